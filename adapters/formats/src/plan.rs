//! A request lowered: the grammar of the turn, and what its labels mean.

use std::sync::Arc;

use louver::front::json_schema::SchemaError;
use louver::ids::{Label, RuleId};
use louver::ir::Grammar;
use louver::spec::json::Json;

use crate::arguments::Reader;
use crate::extract::Extractor;
use crate::fault::RequestFault;
use crate::format::{ArgumentStyle, WireFormat};
use crate::turn::CallKind;

/// What a labelled span of the output is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Free text.
    Text,
    /// Free text behind a marker that has turned out to be text, too.
    Resumed,
    /// Reasoning.
    Reasoning,
    /// The answer that `response_format` asks for.
    Response,
    /// Delimiters inside a turn's calls: section markers and separators.
    Marker,
    /// The header of a call of this tool (an index into the request's tools).
    Header(usize),
    /// The arguments of a call of this tool.
    Arguments(usize),
    /// What ends a call of this tool.
    Trailer(usize),
}

impl Role {
    /// The label that stands for it in the grammar.
    pub fn label(self) -> Label {
        Label::new(match self {
            Role::Text => 0,
            Role::Reasoning => 1,
            Role::Response => 2,
            Role::Marker => 3,
            Role::Resumed => 4,
            Role::Header(tool) => 5 + 3 * tool,
            Role::Arguments(tool) => 6 + 3 * tool,
            Role::Trailer(tool) => 7 + 3 * tool,
        })
    }

    /// What a label of the grammar stands for.
    pub fn of(label: Label) -> Role {
        match label.index() {
            0 => Role::Text,
            1 => Role::Reasoning,
            2 => Role::Response,
            3 => Role::Marker,
            4 => Role::Resumed,
            n => match ((n - 5) % 3, (n - 5) / 3) {
                (0, tool) => Role::Header(tool),
                (1, tool) => Role::Arguments(tool),
                (_, tool) => Role::Trailer(tool),
            },
        }
    }
}

/// What the extractor strips, from the format's description.
#[derive(Debug)]
pub(crate) struct Trims {
    pub(crate) separator: Vec<u8>,
    pub(crate) lead: Vec<u8>,
    pub(crate) trail: Vec<u8>,
}

/// A request lowered in one wire format. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Plan {
    pub(crate) inner: Arc<PlanInner>,
}

#[derive(Debug)]
pub(crate) struct PlanInner {
    pub(crate) grammar: Arc<Grammar>,
    pub(crate) tools: Vec<ToolPlan>,
    /// How many of the tools are functions and custom tools; the others are the model's own.
    pub(crate) functions: usize,
    /// How each tool's arguments are read; none for those that cannot be called.
    pub(crate) readers: Vec<Option<Reader>>,
    /// The same in other styles than that of the template's calls.
    pub(crate) other_readers: Vec<(ArgumentStyle, Vec<Option<Reader>>)>,
    pub(crate) trims: Trims,
    /// Whether reasoning has a budget.
    pub(crate) budgeted: bool,
    pub(crate) warnings: Vec<RequestFault>,
    /// What is not enforced.
    pub(crate) relaxed: Vec<SchemaError>,
    /// The schemas it is said of.
    pub(crate) loose: Vec<Loose>,
    pub(crate) format: WireFormat,
}

impl PlanInner {
    /// How a tool's arguments are read in a spelling (an index into the format's), or in the
    /// template's.
    pub(crate) fn reader(&self, tool: usize, spelling: Option<usize>) -> Option<&Reader> {
        let style = spelling.and_then(|at| self.format.spellings.get(at)?.arguments.as_ref());
        let other = self.other_readers.iter().find(|(known, _)| Some(known) == style);
        other.map_or(&self.readers, |(_, readers)| readers).get(tool)?.as_ref()
    }
}

/// A schema of the request that the grammar does not enforce as a whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Loose {
    /// The tool whose arguments it describes, an index into [`Plan::tools`]; none for the answer.
    pub tool: Option<usize>,
    /// The schema as it was sent.
    pub schema: Json,
}

/// One tool in a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolPlan {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: CallKind,
    /// The rule of its arguments; none if this turn cannot call it.
    pub arguments: Option<RuleId>,
}

impl Plan {
    /// The grammar of the whole turn.
    pub fn grammar(&self) -> &Arc<Grammar> {
        &self.inner.grammar
    }

    /// The request's functions, its custom tools, the model's own tools, each in the request's order; [`Role`]s index this list.
    pub fn tools(&self) -> &[ToolPlan] {
        &self.inner.tools
    }

    /// What may be wrong with the request all the same: warnings of grammars in it, with their places.
    pub fn warnings(&self) -> &[RequestFault] {
        &self.inner.warnings
    }

    /// What the request says and the grammar does not enforce, with pointers into the request: keywords that the policy
    /// lets go (only where arguments are JSON; in other styles every keyword is enforced or refused), and the parameters
    /// of tools that are not flagged strict where only flagged ones are to be.
    pub fn relaxed(&self) -> &[SchemaError] {
        &self.inner.relaxed
    }

    /// The schemas that [`Plan::relaxed`] speaks of: what is said in calls of these tools, or as the answer, may violate them.
    pub fn loose(&self) -> &[Loose] {
        &self.inner.loose
    }

    /// The wire format's name.
    pub fn format(&self) -> &str {
        &self.inner.format.name
    }

    /// The wire format, as it was settled for the vocabulary.
    pub fn wire_format(&self) -> &WireFormat {
        &self.inner.format
    }

    /// An extractor for one generation. Made-up ids of calls depend on the seed and the call's
    /// index: give every generation (each choice of a request with `n > 1`) a seed of its own, and
    /// earlier calls' ids to [`Extractor::reserve_ids`].
    pub fn extractor(&self, id_seed: u64) -> Extractor {
        Extractor::new(self.clone(), id_seed)
    }
}
