//! Query parameters of `GET /v1/responses/{id}`.

use crate::error::{ApiError, ApiFault};

/// Refuses the parameters that ask for anything but the whole stored response. The `param` of a
/// fault is the parameter's name.
pub(super) fn check_query(query: Option<&str>) -> Result<(), ApiError> {
    let parameters = query.unwrap_or_default().split('&').filter(|text| !text.is_empty());
    ApiError::reject(parameters.filter_map(parameter_fault))
}

fn parameter_fault(parameter: &str) -> Option<ApiFault> {
    const NOT_STREAMED: &str = "stored responses are not streamed: get the whole response";
    let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
    // The name of a list may end with brackets, which some clients encode.
    let is_include =
        ["include", "include[]", "include%5B%5D"].iter().any(|own| own.eq_ignore_ascii_case(name));
    let (code, message) = match (name, value) {
        _ if is_include && value == "message.output_text.logprobs" => {
            ("unsupported", "log probabilities are not stored")
        }
        // Other values concern encryption and search, which do not apply.
        _ if is_include => return None,
        ("stream", "false") | ("include_obfuscation", _) => return None,
        ("stream" | "starting_after", _) => ("unsupported", NOT_STREAMED),
        _ => ("unknown_parameter", "there is no such query parameter"),
    };
    Some(ApiFault::at(name, code, message))
}
