//! Checkpoints beside the repository, if this machine has them.

use std::path::Path;

use louver_formats::Catalog;
use louver_templates::{Checkpoint, FormatSource, resolve};
use louver_test_support::data_if_present;

fn checkpoint_if_present(name: &str) -> Option<Checkpoint> {
    let path = data_if_present(Path::new("tokenizers").join(name))?;
    Some(Checkpoint::read(&path).expect("checkpoint"))
}

#[test]
fn families_are_confirmed_and_formats_derived_if_present() {
    let Some(checkpoint) = checkpoint_if_present("qwen3") else { return };
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
fn templates_that_leave_out_ends_are_not_confirmed_if_present() {
    // This template ends the section of one call only after the second.
    let Some(checkpoint) = checkpoint_if_present("deepseek_v3") else { return };
    let family = resolve(&checkpoint, &Catalog::shipped(), "test").expect("a family");
    assert_eq!(family.format.name, "deepseek_v3");
    assert!(!family.is_confirmed() && family.style().null_content, "{family:?}");
    assert!(family.style().arguments_as_text);
    assert!(resolve(&checkpoint, &Catalog::empty(), "test").is_err());
}

#[test]
fn models_whose_template_has_no_calls_are_refused_if_present() {
    let Some(checkpoint) = checkpoint_if_present("llama2") else { return };
    let error = resolve(&checkpoint, &Catalog::shipped(), "test").expect_err("no format");
    assert!(error.to_string().contains("is unknown"), "{error}");
}
