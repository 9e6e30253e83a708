//! The types that a reader of parameters and tags may expect of each value.

use super::super::read::facets::JsonTypes;

/// The types that the values of a schema may have, as a graph: a node for the root, and one for
/// each member and element that has types of its own. A reader of text between tags
/// reads it accordingly:
///
/// * Text that is JSON of an allowed type other than strings is that value.
/// * Other text is a string, if that is allowed.
/// * No text is an empty array, if that is allowed and strings are not, or else an empty object.
/// * Tags whose first is that of an element are an array, if that is allowed, or else an object.
///
/// By default, all types are allowed at all nodes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ValueTypes {
    pub(super) nodes: Vec<ValueNode>,
}

/// The types of a value, and the nodes of the values in it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ValueNode {
    pub(super) types: JsonTypes,
    /// Declared members, in ascending order of their names.
    pub(super) members: Vec<(String, usize)>,
    pub(super) others: usize,
    /// The first elements.
    pub(super) prefix: Vec<usize>,
    pub(super) rest: usize,
}

impl ValueNode {
    /// A node of these types, at whose index all values in it are.
    fn uniform(types: JsonTypes, index: usize) -> ValueNode {
        ValueNode { types, members: Vec::new(), others: index, prefix: Vec::new(), rest: index }
    }
}

impl ValueTypes {
    /// The node of the value of the schema itself.
    pub const ROOT: usize = 0;

    /// An object all of whose values have these types, at any depth.
    pub fn uniform(types: JsonTypes) -> ValueTypes {
        ValueTypes::of_members([], types)
    }

    /// An object whose members have these types: by declared name, and all others. The values in
    /// them have the types of the member.
    pub(super) fn of_members<'n>(
        declared: impl IntoIterator<Item = (&'n str, JsonTypes)>,
        others: JsonTypes,
    ) -> ValueTypes {
        let mut nodes =
            vec![ValueNode::uniform(JsonTypes::OBJECT, 1), ValueNode::uniform(others, 1)];
        let mut members = Vec::new();
        for (name, types) in declared {
            members.push((name.to_owned(), nodes.len()));
            nodes.push(ValueNode::uniform(types, nodes.len()));
        }
        members.sort_unstable();
        nodes[ValueTypes::ROOT].members = members;
        ValueTypes { nodes }
    }

    /// The types of a member of the object at the root.
    pub fn of_member(&self, name: &str) -> JsonTypes {
        self.types(self.member(ValueTypes::ROOT, name))
    }

    /// The types of undeclared members of the object at the root.
    pub(super) fn of_others(&self) -> JsonTypes {
        self.nodes.first().map_or(JsonTypes::ALL, |root| self.types(root.others))
    }

    /// The types of the values at a node.
    pub fn types(&self, node: usize) -> JsonTypes {
        self.nodes.get(node).map_or(JsonTypes::ALL, |node| node.types)
    }

    /// The node of the member of this name in an object at a node.
    pub fn member(&self, node: usize, name: &str) -> usize {
        let Some(ValueNode { members, others, .. }) = self.nodes.get(node) else { return node };
        let found = members.binary_search_by(|(declared, _)| declared.as_str().cmp(name));
        found.map_or(*others, |at| members[at].1)
    }

    /// The node of element `index` of an array at a node.
    pub fn element(&self, node: usize, index: usize) -> usize {
        let Some(ValueNode { prefix, rest, .. }) = self.nodes.get(node) else { return node };
        prefix.get(index).copied().unwrap_or(*rest)
    }
}
