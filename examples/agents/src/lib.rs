//! What the agents share.
