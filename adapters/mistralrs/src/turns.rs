//! Turns of a loaded model: the methods of [`Louver`] that plan one.

use louver_formats::ToolRequest;
use louver_host::{PlanError, TemplateInput};
use mistralrs::RequestLike;

use crate::chat::Chat;
use crate::model::Louver;
use crate::plan::{Plan, PlanBuilder, ToolList};

impl Louver {
    /// Prepares the next turn of a conversation: see [`Chat`].
    pub fn chat(&self, request: impl RequestLike + Send + 'static) -> Chat {
        Chat::new(self.clone(), request)
    }

    /// Compiles an OpenAI-style request. The engine's limits apply. `reasoning` is used as given,
    /// except that [`Reasoning::Optional`](louver_formats::Reasoning::Optional) becomes
    /// [`Reasoning::Opened`](louver_formats::Reasoning::Opened) if the chat template opens the
    /// block.
    pub fn plan(
        &self,
        request: ToolRequest,
        template_input: TemplateInput,
    ) -> Result<Plan, PlanError> {
        Plan::new(self.inner.clone(), request, template_input)
    }

    /// Compiles a request for a prompt without a chat template ([`Plan::text_prompt`]): the output
    /// is text, or the answer that the request asks for. Its wire format does not matter, and the
    /// request offers no tools.
    pub fn plan_completion(&self, request: ToolRequest) -> Result<Plan, PlanError> {
        Plan::completion(self.inner.clone(), request)
    }

    /// Begins a plan of a turn with these tools.
    pub fn tools(&self, tools: impl Into<ToolList>) -> PlanBuilder<'_> {
        PlanBuilder::new(self, tools.into())
    }

    /// Begins a plan of a turn that matches this JSON Schema.
    pub fn answer(&self, schema: &serde_json::Value) -> PlanBuilder<'_> {
        PlanBuilder::new(self, ToolList::default()).response_format(schema)
    }

    /// A plan without a constraint, for comparison: the model sees the tools, and all its output is
    /// text.
    pub fn unconstrained(&self, tools: impl Into<ToolList>) -> Plan {
        Plan::unconstrained(self.inner.clone(), tools.into())
    }
}
