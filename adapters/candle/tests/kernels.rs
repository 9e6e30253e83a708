//! Tests of the CUDA source without a GPU: the committed PTX matches it, and compiled by the host
//! compiler (`cuda/host.cpp`) it agrees with the scalar reference.

use louver_test_support::record_skipped;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use half::{bf16, f16};
use louver_candle::{MaskBatch, RowMask};

use crate::case::{
    Element, Random, ViewLayout, expected_logits, expected_picks, logits, masks, subset,
};

fn cuda() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("cuda")
}

fn read(name: &str) -> String {
    std::fs::read_to_string(cuda().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// The checksum of POSIX `cksum`.
fn cksum(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: u8| {
        (0..8).fold(crc ^ (u32::from(byte) << 24), |crc, _| {
            if crc >> 31 == 1 { (crc << 1) ^ 0x04c1_1db7 } else { crc << 1 }
        })
    };
    let mut crc = bytes.iter().fold(0, |crc, &byte| step(crc, byte));
    let mut length = bytes.len();
    while length > 0 {
        crc = step(crc, length as u8);
        length >>= 8;
    }
    !crc
}

#[test]
fn ptx_matches_the_source_checksum() {
    assert_eq!(cksum(b"123456789"), 930_766_865);
    let (source, ptx) = (read("bitmask.cu"), read("bitmask.ptx"));
    let line = format!("// bitmask.cu: cksum {} {}", cksum(source.as_bytes()), source.len());
    assert_eq!(ptx.lines().next(), Some(line.as_str()), "run cuda/build-ptx > cuda/bitmask.ptx");
    for op in ["apply", "greedy"] {
        for dtype in ["f32", "f16", "bf16"] {
            let entry = format!(".visible .entry louver_{op}_{dtype}(");
            let (_, rest) =
                ptx.split_once(&entry).unwrap_or_else(|| panic!("no kernel louver_{op}_{dtype}"));
            let parameters =
                rest.split_once(')').map_or(0, |(list, _)| list.matches(".param").count());
            assert_eq!(parameters, if op == "apply" { 8 } else { 13 }, "louver_{op}_{dtype}");
        }
    }
}

/// If the right nvcc is installed, it reproduces the PTX.
#[test]
fn nvcc_reproduces_the_ptx_if_present() {
    let nvcc = std::env::var("NVCC").unwrap_or_else(|_| "nvcc".into());
    let version = Command::new(&nvcc)
        .arg("--version")
        .output()
        .map(|out| String::from_utf8_lossy(&out.stdout).into_owned());
    if !version.as_ref().is_ok_and(|text| text.contains("V13.0.88")) {
        record_skipped("there is no nvcc 13.0.88 here");
        return;
    }
    let built =
        Command::new("bash").arg(cuda().join("build-ptx")).output().expect("build-ptx runs");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    assert!(
        String::from_utf8_lossy(&built.stdout) == read("bitmask.ptx"),
        "run cuda/build-ptx > cuda/bitmask.ptx"
    );
}

/// Compiles the source for this machine; `None`, with a message, if there is no C++ compiler.
fn compile_for_host_if_present() -> Option<PathBuf> {
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".into());
    if Command::new(&compiler).arg("--version").output().is_err() {
        record_skipped("there is no C++ compiler here");
        return None;
    }
    let program = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("louver-kernels-{}", std::process::id()));
    let compile = |checks: &[&str]| {
        let mut command = Command::new(&compiler);
        command.args(["-std=c++20", "-O1", "-pthread", "-Wno-unknown-pragmas"]).args(checks);
        command
            .arg("-o")
            .arg(&program)
            .arg(cuda().join("host.cpp"))
            .output()
            .expect("the compiler runs")
    };
    // Sanitizers find out-of-bounds accesses and misaligned vectors, where available.
    let mut out = compile(&["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]);
    if !out.status.success() {
        println!("no sanitizers with this compiler");
        out = compile(&[]);
    }
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    Some(program)
}

/// Launches and their expected results.
#[derive(Default)]
struct Launches {
    input: Vec<u8>,
    output: Vec<u8>,
    labels: Vec<(usize, String)>,
}

/// Blocks and threads of a launch, and the misalignment of its rows in elements.
#[derive(Clone, Copy, Debug)]
struct Shape {
    blocks: u32,
    threads: u32,
    skew: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    Apply,
    Greedy,
}

/// The batch in the kernels' format: the index and the words.
fn kernel_input(batch: &MaskBatch) -> (Vec<u32>, Vec<u32>) {
    let (mut index, mut words) = (Vec::new(), Vec::new());
    for row in 0..batch.len() {
        index.push(match batch.row(row).expect("a row") {
            RowMask::Free => u32::MAX,
            RowMask::All => u32::MAX - 1,
            RowMask::Words(mask) => {
                words.extend_from_slice(mask);
                (words.len() / mask.len()) as u32 - 1
            }
        });
    }
    (index, words)
}

impl Launches {
    fn add<T: Element>(
        &mut self,
        random: &mut Random,
        op: Op,
        layout: ViewLayout,
        width: usize,
        shape: Shape,
    ) {
        let named = (random.below(2) == 1)
            .then(|| subset(random, layout.rows))
            .filter(|rows| !rows.is_empty());
        let rows = named.as_deref();
        let batch = masks(random, rows.map_or(layout.rows, <[u32]>::len), width);
        let temperatures = vec![0.5; if random.below(2) == 0 { 1 } else { batch.len() }];
        let values: Vec<T> = logits(random, layout.elements());
        let (index, words) = kernel_input(&batch);
        let kind = match T::DTYPE {
            candle_core::DType::F32 => 0,
            candle_core::DType::F16 => 1,
            _ => 2,
        };
        // The kernels get a pointer to the first row; memory before it is out of bounds.
        let begin = layout.row_range(0).start;
        let part = &values[begin..];
        let list = |list: &[u32]| list.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
        let bytes = |bits: &[u32]| -> Vec<u8> {
            bits.iter().flat_map(|x| x.to_le_bytes()[..size_of::<T>()].to_vec()).collect()
        };
        let stride = if layout.rows > 1 { layout.row_range(1).start - begin } else { layout.ids };
        let Shape { blocks, threads, skew } = shape;
        let greedy = u32::from(op == Op::Greedy);
        let sizes = [stride, layout.ids, batch.len()].map(|n| n as u32);
        let lists = [
            batch.row_words(),
            width,
            part.len(),
            words.len(),
            rows.map_or(0, <[u32]>::len),
            temperatures.len(),
        ];
        self.input.extend(list(&[greedy, kind]));
        self.input.extend(list(&sizes));
        self.input.extend(list(&[blocks, threads, skew]));
        self.input.extend(list(&lists.map(|n| n as u32)));
        self.input.extend(bytes(&part.iter().map(|x| x.bits()).collect::<Vec<_>>()));
        self.input.extend(list(&index));
        self.input.extend(list(&words));
        self.input.extend(list(rows.unwrap_or_default()));
        self.input.extend(temperatures.iter().flat_map(|x: &f32| x.to_le_bytes()));
        let mut out = vec![0; 2 * batch.len()];
        let mut expected: Vec<u32> = values.iter().map(|x| x.bits()).collect();
        match op {
            Op::Apply => expected = expected_logits(&values, layout, &batch, rows),
            Op::Greedy => {
                for (row, (token, score)) in
                    expected_picks(&values, layout, &batch, rows, &temperatures).iter().enumerate()
                {
                    out[row] = token.unwrap_or(u32::MAX);
                    out[batch.len() + row] = *score;
                }
            }
        }
        self.output.extend(bytes(&expected[begin..]));
        self.output.extend(list(&out));
        self.output.extend([0; 4]);
        let label =
            format!("{op:?} {:?} {layout:?} width {width} {shape:?} rows {rows:?}", T::DTYPE);
        self.labels.push((self.output.len(), label));
    }

    /// Runs all launches in one process and compares the results.
    fn check(self, program: &Path) {
        let mut child = Command::new(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program runs");
        let mut stdin = child.stdin.take().expect("standard input");
        let input = self.input;
        let writer = std::thread::spawn(move || stdin.write_all(&input));
        let actual = child.wait_with_output().expect("the program ends");
        writer.join().expect("no panic").expect("all is read");
        assert!(actual.status.success(), "{}", actual.status);
        let difference = actual.stdout.iter().zip(&self.output).position(|(a, b)| a != b);
        if let Some(position) = difference {
            let label = self.labels.iter().find(|(end, _)| position < *end).map(|(_, label)| label);
            panic!("byte {position}: {label:?}");
        }
        assert_eq!(actual.stdout.len(), self.output.len());
    }
}

#[test]
fn kernels_match_the_scalar_reference_if_present() {
    let Some(program) = compile_for_host_if_present() else { return };
    let mut random = Random(11);
    let mut launches = Launches::default();
    for ids in [1, 7, 8, 31, 32, 33, 100, 127, 128, 1000] {
        for (skew, right) in [(0, 0), (0, 8), (1, 3), (3, 0), (7, 1)] {
            for op in [Op::Apply, Op::Greedy] {
                let layout =
                    ViewLayout { right, ..ViewLayout::contiguous(2 + random.below(3), ids) };
                let shape = Shape { blocks: 1 + random.below(3) as u32, threads: 32, skew };
                let width = [ids, (ids / 2).max(1), ids + 9, 4 * ids][random.below(4)];
                launches.add::<f32>(&mut random, op, layout, width, shape);
                launches.add::<f16>(&mut random, op, layout, width, shape);
                launches.add::<bf16>(&mut random, op, layout, width, shape);
            }
        }
    }
    // Several warps, which reduce through shared memory.
    for ids in [33, 5000] {
        let shape = Shape { blocks: 2, threads: 96, skew: 2 };
        launches.add::<f32>(&mut random, Op::Greedy, ViewLayout::contiguous(2, ids), ids, shape);
        launches.add::<bf16>(&mut random, Op::Greedy, ViewLayout::contiguous(2, ids), ids, shape);
    }
    launches.check(&program);
    let _ = std::fs::remove_file(&program);
}
