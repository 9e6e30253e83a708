//! Families are found from their templates, and confirmed.

use louver_formats::Catalog;
use louver_templates::{FormatSource, resolve};

use super::{FamilyTemplate, TemplateSource, check_all, family_templates};

/// The template and the tokens are enough; the type of the model changes nothing.
fn check(case: &FamilyTemplate) -> Result<(), String> {
    for is_configured in [true, false] {
        let found = resolve(&case.checkpoint(is_configured), &Catalog::shipped(), "test");
        let found = found.map_err(|error| error.to_string())?;
        let is_family = matches!(found.source, FormatSource::Family(_));
        if !is_family || found.format.name != case.family {
            return Err(format!("is {} by {:?}", found.format.name, found.source));
        }
        if !found.is_confirmed() {
            let confirmation = found.confirmation.expect("a template");
            let cases: Vec<String> = confirmation.unconfirmed().map(ToString::to_string).collect();
            return Err(format!("is not confirmed: {}", cases.join("\n  ")));
        }
    }
    Ok(())
}

#[test]
fn families_are_found_from_their_templates() {
    check_all(check);
}

/// And each difference of `families.toml` has a use.
#[test]
fn every_family_has_a_template() {
    let file = family_templates();
    if std::env::var_os("LOUVER_FAMILY").is_some() {
        return;
    }
    for name in Catalog::shipped().names() {
        assert!(file.case.iter().any(|case| case.family == name), "{name} has no template");
    }
    for difference in file.differences.keys() {
        assert!(file.case.iter().any(|case| case.differs(difference)), "{difference} is unused");
    }
    let public = file.case.iter().filter(|case| case.source == TemplateSource::Public).count();
    println!("{public} of {} templates follow public ones", file.case.len());
    for case in &file.case {
        assert!(!case.of.is_empty(), "{} follows nothing", case.name);
        for difference in &case.differs {
            assert!(file.differences.contains_key(difference), "{}: {difference}", case.name);
        }
    }
}
