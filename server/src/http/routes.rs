//! The table of routes: their paths, and what the layers around all routes need to know of them.

use louver::front::diagnostic::similar;

/// A route, together with those below it: `/v1/models` is the route of `/v1/models/{id}`, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    /// The path, which is the label in metrics and spans.
    pub(crate) path: &'static str,
    /// Whether it has no confidential content and needs no key.
    pub(crate) is_public: bool,
    /// Whether monitoring polls it every few seconds: it is logged at the level debug and has no
    /// span.
    pub(crate) is_polled: bool,
}

/// Defines a constant for each path, and the table: one line for each route.
macro_rules! routes {
    ($($(#[$meta:meta])* $name:ident = $path:literal $(, $property:ident)*;)+) => {
        $($(#[$meta])* pub(crate) const $name: &str = $path;)+

        static ROUTES: &[Route] = &[$(Route { $($property: true,)* ..Route::new($path) }),+];
    };
}

routes! {
    CHAT_COMPLETIONS = "/v1/chat/completions";
    COMPLETIONS = "/v1/completions";
    RESPONSES = "/v1/responses";
    /// Its errors, and those of the routes below it, have the format of Anthropic's API.
    MESSAGES = "/v1/messages";
    CHECK = "/v1/louver/check";
    TRACES = "/v1/louver/traces";
    MODELS = "/v1/models";
    /// Answered even on spare slots, and to any host name.
    HEALTH = "/healthz", is_public, is_polled;
    /// The same, under the name that it has in other servers.
    HEALTH_ALIAS = "/health", is_public, is_polled;
    METRICS = "/metrics", is_polled;
    INSPECT = "/inspect", is_public;
}

/// Whether a path is that of the health check.
pub(crate) fn is_health(path: &str) -> bool {
    [HEALTH, HEALTH_ALIAS].contains(&path)
}

/// The most parts of a path that are looked at.
const MAX_PARTS: usize = 16;

/// Stands for all paths outside the table, so that labels are few whatever paths clients request.
pub(crate) const OTHER: &str = "other";

static OTHER_ROUTE: Route = Route::new(OTHER);

impl Route {
    const fn new(path: &'static str) -> Route {
        Route { path, is_public: false, is_polled: false }
    }

    /// The route of a request's path.
    pub(crate) fn of(path: &str) -> &'static Route {
        let is_within = |route: &&Route| {
            path.strip_prefix(route.path)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        ROUTES.iter().find(is_within).unwrap_or(&OTHER_ROUTE)
    }

    /// The other route that a path probably means. Clients append their path to a base URL, which
    /// may lack `/v1` or have more than that.
    pub(crate) fn meant_by(path: &str) -> Option<String> {
        let whole = path.trim_end_matches('/');
        let ends = whole.match_indices('/').map(|(at, _)| &whole[at..]).take(MAX_PARTS);
        let mut routes = ends.flat_map(|end| [end.to_owned(), format!("/v1{end}")]);
        let meant = routes.find(|route| Route::of(route).path == route);
        meant.filter(|meant| meant != path)
    }

    /// The path in the table that is most similar to one that is not in it.
    pub(crate) fn similar_to(path: &str) -> Option<&'static str> {
        similar(path, ROUTES.iter().map(|route| route.path), 0)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn labels_are_few() {
        assert_eq!(Route::of("/v1/models/org/name").path, MODELS);
        assert_eq!(Route::of("/v1/modelsx").path, "other");
        assert_eq!(Route::of("/").path, "other");
    }

    /// The first argument of each call of `Router::route` below a folder, with its file.
    fn registered(folder: &Path, out: &mut Vec<(String, String)>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                registered(&path, out);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let code = text.split("#[cfg(test)]").next().unwrap();
                for call in code.split(".route(").skip(1) {
                    let argument = call.split(',').next().unwrap().trim().to_owned();
                    out.push((path.display().to_string(), argument));
                }
            }
        }
    }

    #[test]
    fn every_registered_route_is_in_the_table() {
        /// Those refused, which count as other, and the inspector's files.
        const COMPUTED: [(&str, &str); 3] = [
            ("unsupported.rs", "route"),
            ("unsupported.rs", "&below"),
            ("inspect/routes.rs", "file.path"),
        ];
        let mut routes = Vec::new();
        registered(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut routes);
        assert!(routes.len() > 14, "{routes:?}");
        for (file, argument) in routes {
            let is_known = match argument.strip_prefix('"') {
                Some(path) => *Route::of(path.trim_end_matches('"')) != OTHER_ROUTE,
                None => {
                    argument.starts_with("routes::")
                        || COMPUTED
                            .iter()
                            .any(|(name, computed)| file.ends_with(name) && argument == *computed)
                }
            };
            assert!(is_known, "{file}: {argument} is not in the table of http/routes.rs");
        }
    }

    #[test]
    fn the_documentation_has_every_route() {
        let page = include_str!("../../../docs/SERVER.md");
        for Route { path, .. } in ROUTES {
            assert!(page.contains(&format!(" {path}`")), "docs/SERVER.md does not list {path}");
        }
    }
}
