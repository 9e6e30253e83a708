//! Checkpoints beside the repository, if this machine has them.

use std::path::PathBuf;

use louver_formats::Catalog;
use louver_templates::{Checkpoint, FormatSource, resolve};

fn checkpoint(name: &str) -> Option<Checkpoint> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let path = path.join("../../../shared/data/tokenizers").join(name);
    if !path.is_dir() {
        println!("skipped: ../shared/data/tokenizers/{name} is not here");
        return None;
    }
    Some(Checkpoint::read(&path).expect("checkpoint"))
}

#[test]
fn families_are_confirmed_and_formats_derived() {
    let Some(checkpoint) = checkpoint("qwen3") else { return };
    let family = resolve(&checkpoint, &Catalog::shipped(), "test").expect("a family");
    assert!(matches!(family.source, FormatSource::Family(_)) && family.is_confirmed());
    assert_eq!(family.format.name, "qwen3");
    let derived = resolve(&checkpoint, &Catalog::empty(), "test").expect("a format");
    assert!(matches!(derived.source, FormatSource::ChatTemplate) && derived.is_confirmed());
    // What the derived format has is what the family has.
    let (family, derived) = (family.format, derived.format);
    assert_eq!(family.reasoning, derived.reasoning);
    assert_eq!((family.call, family.section), (derived.call, derived.section));
}

#[test]
fn templates_that_leave_out_ends_are_not_confirmed() {
    // This template ends the section of one call only after the second.
    let Some(checkpoint) = checkpoint("deepseek_v3") else { return };
    let family = resolve(&checkpoint, &Catalog::shipped(), "test").expect("a family");
    assert_eq!(family.format.name, "deepseek_v3");
    assert!(!family.is_confirmed() && family.style().null_content, "{family:?}");
    assert!(family.style().arguments_as_text);
    assert!(resolve(&checkpoint, &Catalog::empty(), "test").is_err());
}

#[test]
fn models_whose_template_has_no_calls_are_refused() {
    let Some(checkpoint) = checkpoint("llama2") else { return };
    let error = resolve(&checkpoint, &Catalog::shipped(), "test").expect_err("no format");
    assert!(error.to_string().contains("is unknown"), "{error}");
}
