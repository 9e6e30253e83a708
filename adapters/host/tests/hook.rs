//! The hook, called directly. The shims of hosts run the same checks through their own types.

mod conformance;

#[test]
fn the_hook_conforms() {
    conformance::check_all(&conformance::rig::direct);
}
