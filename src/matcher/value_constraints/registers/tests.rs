use super::*;

/// The register after the open element has read a text.
fn read(registers: &mut Registers, open: RegisterId, text: &str) -> RegisterId {
    text.bytes().fold(open, |register, byte| registers.read_symbol(register, byte.into()))
}

/// The register of a set of values; those that are equal to an earlier one are left out.
fn register_of(registers: &mut Registers, texts: &[String]) -> RegisterId {
    texts.iter().fold(RegisterId::EMPTY, |set, text| {
        let open = registers.begin_element(set).unwrap();
        let open = read(registers, open, text);
        registers.end_element(open).unwrap_or(set)
    })
}

/// Values with common beginnings, some of them equal.
fn texts() -> Vec<String> {
    let mut texts: Vec<String> =
        ["null", "-0", "0e5", "1e1", "10.0", "[ ]", "[]", "{}", "x", "1 2"].map(Into::into).into();
    for i in 0..12 {
        texts.extend([
            format!("\"key{i}\""),
            format!("\"\\u006be{}{i}\"", ["y", "\\u0079", "\\ud83d\\ude00"][i % 3]),
            format!("{}", 8 + i),
            format!("{}e-1", 10 * i),
            format!("[\"a\", {i}]"),
            format!(r#"{{"id": {}, "b": [{i}]}}"#, i / 2),
            format!(r#"{{"b": [{i}.0], "id": {}}}"#, i / 3),
        ]);
    }
    texts
}

#[test]
fn a_set_compares_as_its_values_do_one_by_one() {
    let texts = texts();
    let registers = &mut Registers::new();
    for n in [1, 2, 3, 7, 20, texts.len()] {
        let set = register_of(registers, &texts[..n]);
        let each: Vec<RegisterId> = texts[..n]
            .iter()
            .map(|text| register_of(registers, std::slice::from_ref(text)))
            .collect();
        for text in &texts {
            for end in 0..=text.len() {
                let mut open = |set| {
                    let open = registers.begin_element(set).unwrap();
                    let open = read(registers, open, &text[..end]);
                    let rivals = registers.status(open).has_rivals;
                    let is_equal = registers.end_element(open).is_none();
                    (rivals, registers.rival_bytes(open, true), is_equal)
                };
                let one_by_one = each.iter().fold((false, ByteSet::EMPTY, false), |all, &one| {
                    let one = open(one);
                    (all.0 || one.0, all.1.union(&one.1), all.2 || one.2)
                });
                assert_eq!(open(set), one_by_one, "{n} values, {:?}", &text[..end]);
            }
        }
    }
}

#[test]
fn sets_have_few_blocks_and_spellings_share_rivals() {
    let registers = &mut Registers::new();
    let texts: Vec<String> = (0..100).map(|i| format!("\"key{i}\"")).collect();
    let set = register_of(registers, &texts);
    let mut rivals = |text| {
        let open = registers.begin_element(set).unwrap();
        let open = read(registers, open, text);
        registers.rival_state(open)
    };
    let states = [r#""ke"#, r#""\u006be"#, r#""k\u0065"#].map(&mut rivals);
    assert_eq!(states[0].as_ref().unwrap().rivals.len(), 3, "blocks of 64, 32 and 4 values");
    assert!(states.iter().all(|state| *state == states[0]));
    assert_ne!(states[0], rivals(r#""key"#));
}
