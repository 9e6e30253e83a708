//! Errors of schemas: what cannot be enforced, where, and why.

use std::fmt;

/// One reason why a schema cannot be enforced.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{pointer:?}: {reason}")]
pub struct SchemaError {
    /// JSON pointer to the offending keyword's value, or to the schema.
    pub pointer: String,
    /// The keyword; empty for an error of the schema as a whole.
    pub keyword: String,
    /// The reason.
    pub reason: SchemaErrorReason,
}

/// Why a schema is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaErrorReason {
    /// Not a schema: a keyword's value has the wrong form.
    #[error("malformed: {0}")]
    Malformed(String),
    /// A keyword, or a use of it, that is not enforced yet.
    #[error("not supported: {0}")]
    Unsupported(String),
    /// A schema that need not be enforced, by the request or its settings.
    #[error("not enforced: {0}")]
    Unenforced(String),
    /// No value satisfies the schema.
    #[error("unsatisfiable: {0}")]
    Unsatisfiable(String),
    /// A limit was reached.
    #[error("limit reached: {0}")]
    Limit(String),
    /// The policy would relax keywords, but the called function does not report them.
    #[error(
        "the policy must be `strict` here, because this function does not report what is relaxed"
    )]
    Policy,
}

impl SchemaError {
    /// An error of the schema as a whole.
    pub(super) fn of_schema(reason: SchemaErrorReason) -> SchemaError {
        SchemaError { pointer: String::new(), keyword: String::new(), reason }
    }

    /// Advice for the author of the schema.
    pub fn hint(&self) -> &'static str {
        match self.reason {
            SchemaErrorReason::Malformed(_) => "correct the keyword's value",
            SchemaErrorReason::Unsupported(_) => {
                "remove the keyword or express it with supported ones (docs/JSON_SCHEMA.md)"
            }
            SchemaErrorReason::Unenforced(_) => "ask for the schema to be enforced",
            SchemaErrorReason::Unsatisfiable(_) => "loosen one of the contradicting keywords",
            SchemaErrorReason::Limit(_) => {
                "simplify the schema, raise the limit, or relax it with the policy `validate`"
            }
            SchemaErrorReason::Policy => "set the policy to `strict`",
        }
    }
}

/// All errors of a schema; never empty.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct SchemaErrors(pub Vec<SchemaError>);

impl SchemaErrors {
    /// The errors.
    pub fn iter(&self) -> std::slice::Iter<'_, SchemaError> {
        self.0.iter()
    }

    /// Whether the schema is valid and enforceable, but no value satisfies it.
    pub fn is_unsatisfiable(&self) -> bool {
        self.iter().all(|error| matches!(error.reason, SchemaErrorReason::Unsatisfiable(_)))
    }
}

impl fmt::Display for SchemaErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::front::write_list(f, &self.0)?;
        if self.iter().any(|error| matches!(error.reason, SchemaErrorReason::Limit(_))) {
            f.write_str("; the policy `validate` relaxes what reaches a limit")?;
        }
        Ok(())
    }
}
