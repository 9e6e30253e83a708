//! Advice about flags of other servers on the command line of `louver serve`.

use std::ffi::OsString;

use clap::Command;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use louver_server::foreign_option;

/// The error with advice about each flag of another server in place of clap's tip. `-hf` is no call
/// for help.
pub(crate) fn advised(error: Error, mut command: Command, arguments: &[OsString]) -> Error {
    if arguments.get(1).is_none_or(|name| name != "serve") {
        return error;
    }
    let flags = arguments.iter().filter_map(|argument| argument.to_str()).filter_map(foreign);
    let flags: Vec<(&str, &str)> = flags.collect();
    let is_misread_help =
        || error.kind() == ErrorKind::DisplayHelp && flags.iter().any(|(flag, _)| is_help(flag));
    let mut error = match error.kind() {
        ErrorKind::UnknownArgument => error,
        _ if is_misread_help() => {
            command.build();
            let serve = command.find_subcommand("serve").unwrap_or(&command);
            let mut error = Error::new(ErrorKind::UnknownArgument).with_cmd(serve);
            let name = flags.iter().find(|(flag, _)| is_help(flag)).map_or("", |(flag, _)| flag);
            error.insert(ContextKind::InvalidArg, ContextValue::String(name.to_owned()));
            error
        }
        _ => return error,
    };
    if !flags.is_empty() {
        let tips = flags.iter().map(|(flag, advice)| format!("{flag}: {advice}").into());
        error.remove(ContextKind::SuggestedArg);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips.collect()));
    }
    error
}

/// Whether clap reads the argument as `-h` with other letters.
fn is_help(argument: &str) -> bool {
    argument.starts_with("-h") && argument.len() > 2
}

/// An argument that is a flag of another server, without its value, and advice.
fn foreign(argument: &str) -> Option<(&str, &'static str)> {
    let (flag, _) = argument.split_once('=').unwrap_or((argument, ""));
    // Those of one letter have one hyphen, and others two, or one as in llama.cpp.
    let is_flag =
        flag.len() > 1 && flag.starts_with('-') && (flag.len() > 3 || !flag.starts_with("--"));
    is_flag.then(|| Some((flag, foreign_option(flag)?))).flatten()
}

#[cfg(test)]
#[test]
fn no_flag_of_louver_is_one_of_another_server() {
    use clap::CommandFactory;

    let command = crate::Cli::command();
    let serve = command.find_subcommand("serve").expect("the command");
    for flag in serve.get_arguments().filter_map(|argument| argument.get_long()) {
        assert_eq!(foreign_option(flag), None, "{flag}");
    }
}
