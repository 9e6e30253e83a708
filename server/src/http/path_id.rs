//! The id in the path of a request.

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;

use crate::error::{ApiError, ErrorKind};

/// The id in the path of a route that has one. A path that cannot be decoded is an error like all
/// others, with a body in the route's format.
#[derive(Debug)]
pub(crate) struct PathId(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for PathId {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<PathId, ApiError> {
        let Ok(Path(id)) = Path::from_request_parts(parts, state).await else {
            let message = "the id in the path is not UTF-8 when its percent escapes are decoded";
            return Err(ApiError::general(ErrorKind::Invalid, "invalid_path", message));
        };
        Ok(PathId(id))
    }
}
