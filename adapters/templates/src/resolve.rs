//! The wire format of a checkpoint, from the sources in their order.
//!
//! A family that Louver knows is taken if the chat template confirms it: it also has the spellings
//! that its models write beside the template's. Otherwise the checkpoint describes the format
//! itself, by its `response_template` or by what its chat template writes. Such a description is
//! taken only if the chat template confirms it.

use louver_formats::{Catalog, DetectError, WireFormat};

use crate::chat_template::TemplateError;
use crate::checkpoint::Checkpoint;
use crate::confirm::{Confirmation, confirm, confirm_written, written_turns};
use crate::message_style::MessageStyle;
use crate::notes;
use crate::probe::{ProbeError, probe};
use crate::response_template::{ResponseTemplateError, ResponseTemplateWarning};

/// Where a wire format came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FormatSource {
    /// The operator, by name or with a description.
    Operator,
    /// A family of the catalog, for this reason.
    Family(String),
    /// The checkpoint's `response_template`, which leaves this open or asks for more.
    ResponseTemplate(Vec<ResponseTemplateWarning>),
    /// Renderings of the chat template: see [`FIELD_SOURCES`](crate::FIELD_SOURCES).
    ChatTemplate,
}

/// The wire format of a checkpoint.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Resolved {
    /// The format.
    pub format: WireFormat,
    /// Where it came from.
    pub source: FormatSource,
    /// What the chat template confirms, or why there is no chat template.
    pub confirmation: Result<Confirmation, TemplateError>,
    /// What was found about the sources that were not used, and what the format forbids or lacks,
    /// for people.
    pub notes: Vec<String>,
}

impl Resolved {
    /// A derived format, if the template confirms it in full.
    fn confirmed(
        confirmation: Result<Confirmation, TemplateError>,
        format: WireFormat,
        source: FormatSource,
    ) -> Result<Resolved, SourceError> {
        let confirmation = confirmation.map_err(SourceError::NoTemplate)?;
        let is_full = confirmation.is_full();
        let notes = notes::of_format(&format).into_iter().collect();
        let resolved = Resolved { format, source, confirmation: Ok(confirmation), notes };
        if is_full { Ok(resolved) } else { Err(SourceError::Unconfirmed(Box::new(resolved))) }
    }

    /// A format that the operator names, with what the chat template says of it.
    pub fn named(format: WireFormat, checkpoint: &Checkpoint) -> Resolved {
        let template = checkpoint.template.as_ref().map_err(Clone::clone);
        let confirmation =
            template.map(|template| confirm(&format, template, &checkpoint.special_tokens));
        let mut named =
            Resolved { format, source: FormatSource::Operator, confirmation, notes: Vec::new() };
        named.notes = named.contradictions();
        named
    }

    /// Whether the chat template confirms the format in full.
    pub fn is_confirmed(&self) -> bool {
        self.confirmation.as_ref().is_ok_and(Confirmation::is_full)
    }

    /// How the chat template wants messages.
    pub fn style(&self) -> MessageStyle {
        self.confirmation.as_ref().map(|confirmation| confirmation.style).unwrap_or_default()
    }
}

/// Why a checkpoint has no wire format: what is known of each source.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}", self.describe())]
#[non_exhaustive]
pub struct ResolveError {
    /// Why no family of the catalog was taken.
    pub family: Box<FamilyError>,
    /// What is wrong with the `response_template`, if there is one.
    pub response_template: Option<Box<SourceError>>,
    /// Why the chat template does not tell the format.
    pub chat_template: Box<SourceError>,
}

/// Why no family of the catalog was taken.
#[derive(Clone, Debug, thiserror::Error)]
pub enum FamilyError {
    /// None is detected.
    #[error("{0}")]
    Undetected(DetectError),
    /// The chat template writes the calls of the detected family otherwise. (A family that the
    /// model's configuration names is taken all the same.)
    #[error(
        "the wire format looks like {name}, as {reason}, but the chat template writes other calls \
         ({}); name one",
        contradiction(confirmation)
    )]
    Contradicted {
        /// The family.
        name: String,
        /// The properties of the model by which it was detected.
        reason: String,
        /// What the chat template says.
        confirmation: Confirmation,
    },
}

/// The first turn that a template writes otherwise, if possible one with a call.
fn contradiction(confirmation: &Confirmation) -> String {
    let mut calls = confirmation.unconfirmed().filter(|case| case.name.contains("call"));
    let first = calls.next().or_else(|| confirmation.unconfirmed().next());
    first.map(ToString::to_string).unwrap_or_default()
}

/// Why a source gives no wire format.
#[derive(Clone, Debug)]
pub enum SourceError {
    /// The `response_template` cannot be a wire format.
    ResponseTemplate(ResponseTemplateError),
    /// The chat template does not tell the format.
    Probe(ProbeError),
    /// The chat template contradicts this description.
    Unconfirmed(Box<Resolved>),
    /// There is no chat template, or it is invalid.
    NoTemplate(TemplateError),
}

impl ResolveError {
    fn describe(&self) -> String {
        let response_template = self.response_template.as_deref();
        let sources = response_template.map(|problem| ("response_template", problem));
        let chat_template = Some(("chat template", &*self.chat_template));
        // An invalid chat template is the cause of the rest.
        let (mut out, chat_template) = match &*self.chat_template {
            SourceError::NoTemplate(error @ TemplateError::Render(_)) => {
                (format!("{error}; {}", self.family), None)
            }
            _ => (self.family.to_string(), chat_template),
        };
        for (name, problem) in sources.into_iter().chain(chat_template) {
            out += "; ";
            match problem {
                SourceError::ResponseTemplate(error) => out += &error.to_string(),
                SourceError::Probe(error) => out += &error.to_string(),
                SourceError::NoTemplate(error) => out += &error.to_string(),
                SourceError::Unconfirmed(found) => {
                    let first = found.first_contradiction("louver formats detect MODEL");
                    let first = first.unwrap_or_default();
                    out += &format!("the {name}'s format is not confirmed: {first}");
                }
            }
        }
        out
    }
}

/// Finds the wire format of a checkpoint. `name` is the name of a format that the catalog does not
/// have. Fails if no source gives a format that the chat template confirms; a family of the catalog
/// is taken unconfirmed, too, and says so.
///
/// Cost: some milliseconds, for renderings and small grammars.
pub fn resolve(
    checkpoint: &Checkpoint,
    catalog: &Catalog,
    name: &str,
) -> Result<Resolved, ResolveError> {
    let template = checkpoint.template.as_ref().map_err(Clone::clone);
    let written =
        template.clone().map(|template| written_turns(template, &checkpoint.special_tokens));
    let check = |format: &WireFormat| {
        let written = written.as_ref().map_err(Clone::clone)?;
        Ok(confirm_written(format, written))
    };
    let mut notes = Vec::new();
    let family = match find_family(checkpoint, catalog, &check) {
        Ok((family, _)) if family.is_confirmed() || written.is_err() => {
            return Ok(family.beside(checkpoint));
        }
        Ok((family, is_configured)) => {
            notes.extend(family.contradictions());
            family.unless_contradicted(is_configured)
        }
        Err(error) => Err(FamilyError::Undetected(error)),
    };
    let confirmed =
        |format: WireFormat, source| Resolved::confirmed(check(&format), format, source);
    let declared = checkpoint.response_template.as_ref().map(|response| {
        let lowered = response.as_ref().map_err(Clone::clone);
        let lowered = lowered.and_then(|response| response.lower(name));
        let lowered = lowered.map_err(SourceError::ResponseTemplate);
        lowered.and_then(|(format, warnings)| {
            confirmed(format, FormatSource::ResponseTemplate(warnings))
        })
    });
    let rendered = || {
        let template = template.map_err(SourceError::NoTemplate)?;
        let probed = probe(name, template, &checkpoint.special_tokens);
        confirmed(probed.map_err(SourceError::Probe)?.format, FormatSource::ChatTemplate)
    };
    let (response_template, chat_template) = match declared {
        Some(Ok(resolved)) => return Ok(resolved.derived(notes, checkpoint)),
        declared => match rendered() {
            Ok(resolved) => return Ok(resolved.derived(notes, checkpoint).beside(checkpoint)),
            Err(problem) => (declared.and_then(Result::err), problem),
        },
    };
    // A missing template is one problem.
    let response_template =
        response_template.filter(|problem| !matches!(problem, SourceError::NoTemplate(_)));
    match family {
        Ok(family) => Ok(Resolved { notes, ..family }.beside(checkpoint)),
        Err(family) => Err(ResolveError {
            family: Box::new(family),
            response_template: response_template.map(Box::new),
            chat_template: Box::new(chat_template),
        }),
    }
}

impl Resolved {
    /// The family, unless the template writes its calls otherwise and the configuration does not
    /// name it.
    fn unless_contradicted(self, is_configured: bool) -> Result<Resolved, FamilyError> {
        match (self.source, self.confirmation) {
            (FormatSource::Family(reason), Ok(confirmation))
                if !is_configured && confirmation.contradicts_calls() =>
            {
                let name = self.format.name;
                Err(FamilyError::Contradicted { name, reason, confirmation })
            }
            (source, confirmation) => Ok(Resolved { source, confirmation, ..self }),
        }
    }

    /// A derived format with what was noted before, and the text that the template leaves out.
    fn derived(mut self, mut notes: Vec<String>, checkpoint: &Checkpoint) -> Resolved {
        let template = checkpoint.template.as_ref().ok();
        notes.extend(template.and_then(|template| {
            notes::of_hidden_text(&self.format, template, &checkpoint.special_tokens)
        }));
        self.notes.splice(0..0, notes);
        self
    }

    /// Adds what the checkpoint's `response_template` says otherwise.
    fn beside(mut self, checkpoint: &Checkpoint) -> Resolved {
        match &checkpoint.response_template {
            None => {}
            Some(Err(error)) => self.notes.push(error.to_string()),
            Some(Ok(response)) => {
                let differences = response.differences(&self.format);
                let notes = differences.iter().map(|what| format!("response_template: {what}"));
                self.notes.extend(notes);
            }
        }
        self
    }

    /// The first turn that is not confirmed, how many others there are, and the command that shows
    /// them.
    fn first_contradiction(&self, command: &str) -> Option<String> {
        let mut cases = self.confirmation.iter().flat_map(Confirmation::unconfirmed);
        let first = cases.next()?;
        Some(match cases.count() {
            0 => first.to_string(),
            n => format!("{first} (and {n} more: `{command}`)"),
        })
    }

    /// How the chat template and the format differ.
    fn contradictions(&self) -> Vec<String> {
        let name = &self.format.name;
        let first = self.first_contradiction(&format!("louver formats check {name} MODEL"));
        let differ =
            |first| format!("the chat template and the wire format {name} differ: {first}");
        first.map(differ).into_iter().collect()
    }
}

/// The family of the catalog, and whether the configuration names it. Among several that fit, the
/// one that the chat template confirms.
fn find_family(
    checkpoint: &Checkpoint,
    catalog: &Catalog,
    check: &dyn Fn(&WireFormat) -> Result<Confirmation, TemplateError>,
) -> Result<(Resolved, bool), DetectError> {
    let (candidates, error) = match checkpoint.with_hints(|hints| catalog.detect(hints)) {
        Ok(detected) => (vec![detected], None),
        Err(DetectError::Ambiguous { candidates }) => {
            (candidates.clone(), Some(DetectError::Ambiguous { candidates }))
        }
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for detected in candidates {
        let Ok(format) = catalog.get(&detected.name) else { continue };
        let confirmation = check(format);
        let family = Resolved {
            format: format.clone(),
            source: FormatSource::Family(detected.reason),
            confirmation,
            notes: Vec::new(),
        };
        found.push((family, detected.is_configured));
    }
    match error {
        None => found
            .pop()
            .ok_or(DetectError::Unknown { seen: "the catalog fits none", known: catalog.names() }),
        Some(error) => {
            let mut confirmed = found.into_iter().filter(|(family, _)| family.is_confirmed());
            match (confirmed.next(), confirmed.next()) {
                (Some(only), None) => Ok(only),
                _ => Err(error),
            }
        }
    }
}
