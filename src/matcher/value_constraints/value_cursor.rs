//! Cursor into a JSON value: the position that a text has reached while it spells the value.
//!
//! A cursor tells which part of a value is open, but nothing about the content of the parts. Values
//! with the same structure therefore have equal cursors after the same text, and are followed
//! together. JSON allows many spellings of a value: white space, escapes, number formats and the
//! order of members. A cursor accepts all of them.
//!
//! Invariant (test: cursors_accept_exactly_the_spellings_of_a_value): the cursor of a text exists
//! as long as the text is a prefix of a spelling, and [`CursorTable::is_equal`] holds for the
//! spellings.

use std::cmp::Ordering;
use std::ops::Deref;

use super::json_string::EscapeState;
use super::json_value::{JsonNode, JsonNodeId, JsonValue, NUMBER_BYTES, WHITE_SPACE_BYTES};
use super::number_prefix::NumberPrefix;
use crate::fsm::ByteSet;
use crate::hash::HashMap;
use crate::ids::id;
use crate::matcher::symbol::SymbolCode;

id! {
    /// The state of an open container: an index into [`CursorTable::containers`].
    ContainerId
}

impl ContainerId {
    /// The outermost level, outside of all containers.
    const OUTERMOST: ContainerId = ContainerId::from_raw(0);
}

/// Approximate memory of a container state, in bytes.
const CONTAINER_BYTES: usize = 80;

/// Position of a text in a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ValueCursor {
    /// The state of the innermost open container.
    container: ContainerId,
    position: CursorPosition,
}

/// The part of the value that is open or expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum CursorPosition {
    /// Before a node, perhaps in white space.
    Before(JsonNodeId),
    /// In a word (`null`, `true`, `false`), after this many bytes.
    Word(JsonNodeId, u32),
    /// In a number, or after it.
    Number(JsonNodeId),
    /// In a string, after this many decoded bytes and an incomplete character.
    String(JsonNodeId, u32, EscapeState),
    /// Before the name of a member.
    Member,
    /// In a name, as in a string. The member is the first candidate with this beginning.
    Name(u32, u32, EscapeState),
    /// Before the colon of a member with this node.
    Colon(JsonNodeId),
    /// After a node, or after an opening bracket with nothing inside.
    AfterNode,
    /// After this many symbols of a text that is not JSON.
    Other(u32),
}

/// State of an open array or object.
#[derive(Debug)]
struct ContainerState {
    /// The state of the container around it.
    parent: ContainerId,
    node: JsonNodeId,
    /// Number of elements or members that have begun.
    begun: usize,
    /// Bit set of the members that have begun.
    used_members: Box<[u64]>,
}

impl ContainerState {
    /// Whether a member has begun.
    fn is_used(&self, member: u32) -> bool {
        self.used_members
            .get(member as usize / 64)
            .is_some_and(|word| word >> (member % 64) & 1 == 1)
    }
}

/// A child that begins in a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct BegunChild {
    /// The state before.
    container: ContainerId,
    /// The index of a member; 0 for an element.
    member: u32,
}

/// Interned container states of one parser's cursors.
#[derive(Debug)]
pub(super) struct CursorTable {
    containers: Vec<ContainerState>,
    /// Container states by parent and node.
    opened: HashMap<(ContainerId, JsonNodeId), ContainerId>,
    /// Container states by the child that begins.
    begun_children: HashMap<BegunChild, ContainerId>,
    held_bytes: usize,
}

impl CursorTable {
    /// A table with the outermost level only.
    pub(super) fn new() -> CursorTable {
        let outermost = ContainerState {
            parent: ContainerId::OUTERMOST,
            node: JsonNodeId::ROOT,
            begun: 0,
            used_members: Box::default(),
        };
        CursorTable {
            containers: vec![outermost],
            opened: HashMap::default(),
            begun_children: HashMap::default(),
            held_bytes: 0,
        }
    }

    /// Approximate memory in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.held_bytes
    }

    /// The cursor of an empty text.
    pub(super) fn begin(value: &JsonValue) -> ValueCursor {
        let position = if let JsonNode::Other(_) = value.node(JsonNodeId::ROOT) {
            CursorPosition::Other(0)
        } else {
            CursorPosition::Before(JsonNodeId::ROOT)
        };
        ValueCursor { container: ContainerId::OUTERMOST, position }
    }

    /// The cursor after one more symbol; `None` if the text no longer begins a spelling of the
    /// value. `number` is the number prefix at the end of the text before.
    pub(super) fn step(
        &mut self,
        value: &JsonValue,
        cursor: ValueCursor,
        symbol: SymbolCode,
        number: &impl Deref<Target = NumberPrefix>,
    ) -> Option<ValueCursor> {
        let ValueCursor { container, position } = cursor;
        if let (CursorPosition::Other(read), JsonNode::Other(node_value)) =
            (position, value.node(JsonNodeId::ROOT))
        {
            return (node_value.get(read as usize) == Some(&symbol))
                .then_some(ValueCursor { container, position: CursorPosition::Other(read + 1) });
        }
        self.step_byte(value, cursor, symbol.byte()?, number)
    }

    /// As [`CursorTable::step`], over a byte of a JSON text.
    fn step_byte(
        &mut self,
        value: &JsonValue,
        cursor: ValueCursor,
        byte: u8,
        number: &impl Deref<Target = NumberPrefix>,
    ) -> Option<ValueCursor> {
        let ValueCursor { container, position } = cursor;
        let position = match (position, position.node().map(|node| value.node(node))) {
            (
                CursorPosition::Before(_)
                | CursorPosition::Member
                | CursorPosition::Colon(_)
                | CursorPosition::AfterNode,
                _,
            ) if WHITE_SPACE_BYTES.contains(&byte) => position,
            (CursorPosition::Before(node), Some(node_value)) => {
                return self.enter(node_value, container, node, byte);
            }
            (CursorPosition::Colon(node), _) => {
                (byte == b':').then_some(CursorPosition::Before(node))?
            }
            (CursorPosition::AfterNode, _) => return self.after_node(value, container, byte),
            (CursorPosition::Member, _) => {
                let first = self.unused_members(value, container, b"", b"").next()?;
                (byte == b'"').then_some(CursorPosition::Name(first, 0, EscapeState::NONE))?
            }
            (CursorPosition::Name(member, read, escape), _) => {
                return self.step_key(value, container, member, read, escape, byte);
            }
            (CursorPosition::Word(node, read), Some(JsonNode::Word(node_value))) => {
                CursorPosition::step_word(node_value, node, read, byte)?
            }
            (CursorPosition::Number(_), Some(JsonNode::Number(node_value))) => {
                number.next_bytes(node_value).contains(byte).then_some(())?;
                if !NUMBER_BYTES.contains(&byte) {
                    let ended = ValueCursor { container, position: CursorPosition::AfterNode };
                    return self.step_byte(value, ended, byte, number);
                }
                position
            }
            (CursorPosition::String(node, read, escape), Some(JsonNode::String(node_value))) => {
                CursorPosition::step_string(node_value, node, read, escape, byte)?
            }
            _ => return None,
        };
        Some(ValueCursor { container, position })
    }

    /// The first byte of a node.
    fn enter(
        &mut self,
        node_value: &JsonNode,
        container: ContainerId,
        node: JsonNodeId,
        byte: u8,
    ) -> Option<ValueCursor> {
        let position = match (node_value, byte) {
            (JsonNode::Word(word), _) if word.first() == Some(&byte) => {
                CursorPosition::Word(node, 1)
            }
            (JsonNode::Number(number), _)
                if NumberPrefix::NONE.next_bytes(number).contains(byte) =>
            {
                CursorPosition::Number(node)
            }
            (JsonNode::String(_), b'"') => CursorPosition::String(node, 0, EscapeState::NONE),
            (JsonNode::Array(items), b'[') => {
                let container = self.open_container(container, node);
                let Some(&first) = items.first() else {
                    return Some(ValueCursor { container, position: CursorPosition::AfterNode });
                };
                return Some(ValueCursor {
                    container: self.begin_child(container, 0),
                    position: CursorPosition::Before(first),
                });
            }
            (JsonNode::Object(members), b'{') => {
                let position = if members.is_empty() {
                    CursorPosition::AfterNode
                } else {
                    CursorPosition::Member
                };
                return Some(ValueCursor {
                    container: self.open_container(container, node),
                    position,
                });
            }
            _ => return None,
        };
        Some(ValueCursor { container, position })
    }

    /// The byte after a node, or after an opening bracket with nothing inside.
    fn after_node(
        &mut self,
        value: &JsonValue,
        container: ContainerId,
        byte: u8,
    ) -> Option<ValueCursor> {
        if byte != self.expected_punctuation(value, container)? {
            return None;
        }
        let ContainerState { parent, node, begun, .. } = self.containers[container.index()];
        match value.node(node) {
            _ if byte != b',' => {
                Some(ValueCursor { container: parent, position: CursorPosition::AfterNode })
            }
            JsonNode::Array(items) => Some(ValueCursor {
                container: self.begin_child(container, 0),
                position: CursorPosition::Before(items[begun]),
            }),
            _ => Some(ValueCursor { container, position: CursorPosition::Member }),
        }
    }

    /// The punctuation after a child of a container.
    fn expected_punctuation(&self, value: &JsonValue, container: ContainerId) -> Option<u8> {
        let ContainerState { node, begun, .. } = self.containers[container.index()];
        match value.node(node) {
            _ if container == ContainerId::OUTERMOST => None,
            JsonNode::Array(items) => Some(if begun == items.len() { b']' } else { b',' }),
            JsonNode::Object(members) => Some(if begun == members.len() { b'}' } else { b',' }),
            _ => None,
        }
    }

    /// A byte of a member's name.
    fn step_key(
        &mut self,
        value: &JsonValue,
        container: ContainerId,
        member: u32,
        read: u32,
        mut escape: EscapeState,
        byte: u8,
    ) -> Option<ValueCursor> {
        let decoded = escape.read(byte)?;
        let members = self.members(value, container);
        let (name, more) = (&members.get(member as usize)?.0, decoded.bytes());
        let member = match !decoded.ends_string && name[read as usize..].starts_with(more) {
            true => member,
            false => self.unused_members(value, container, &name[..read as usize], more).next()?,
        };
        let read = read + more.len() as u32;
        if !decoded.ends_string {
            return Some(ValueCursor {
                container,
                position: CursorPosition::Name(member, read, escape),
            });
        }
        // Members are sorted by name, so the exact name is the first candidate.
        let (name, node) = &members[member as usize];
        let node = (name.len() == read as usize).then_some(*node)?;
        Some(ValueCursor {
            container: self.begin_child(container, member),
            position: CursorPosition::Colon(node),
        })
    }

    /// The members of the open object.
    fn members<'v>(
        &self,
        value: &'v JsonValue,
        container: ContainerId,
    ) -> &'v [(Vec<u8>, JsonNodeId)] {
        match value.node(self.containers[container.index()].node) {
            JsonNode::Object(members) => members,
            _ => &[],
        }
    }

    /// The unused members whose names begin with `text` and `more`, sorted by name.
    fn unused_members<'v>(
        &self,
        value: &'v JsonValue,
        container: ContainerId,
        text: &[u8],
        more: &[u8],
    ) -> impl Iterator<Item = u32> + use<'_, 'v> {
        let members = self.members(value, container);
        let compare_prefix =
            |name: &[u8]| name.iter().take(text.len() + more.len()).cmp(text.iter().chain(more));
        let from = members.partition_point(|(name, _)| compare_prefix(name) == Ordering::Less);
        let count =
            members[from..].partition_point(|(name, _)| compare_prefix(name) == Ordering::Equal);
        let container = &self.containers[container.index()];
        (from..from + count)
            .map(|member| member as u32)
            .filter(|&member| !container.is_used(member))
    }

    /// A superset of the bytes that continue a spelling of the value; empty only if there is none.
    /// `number` is the number prefix at the end of the text.
    pub(super) fn next_bytes(
        &self,
        value: &JsonValue,
        cursor: ValueCursor,
        number: &impl Deref<Target = NumberPrefix>,
    ) -> ByteSet {
        let ValueCursor { container, position } = cursor;
        let spaced = |bytes: &[u8]| ByteSet::from_bytes(bytes).union(&ByteSet::WHITE_SPACE);
        match (position, position.node().map(|node| value.node(node))) {
            (CursorPosition::Before(_), Some(JsonNode::Word(node_value))) => {
                spaced(&node_value[..1])
            }
            (CursorPosition::Before(_), Some(JsonNode::Number(node_value))) => {
                NumberPrefix::NONE.next_bytes(node_value).union(&ByteSet::WHITE_SPACE)
            }
            (CursorPosition::Before(_), Some(JsonNode::String(_)))
            | (CursorPosition::Member, _) => spaced(b"\""),
            (CursorPosition::Before(_), Some(JsonNode::Array(_))) => spaced(b"["),
            (CursorPosition::Before(_), Some(JsonNode::Object(_))) => spaced(b"{"),
            (CursorPosition::Colon(_), _) => spaced(b":"),
            (CursorPosition::AfterNode, _) => {
                spaced(self.expected_punctuation(value, container).as_slice())
            }
            (CursorPosition::Word(_, read), Some(JsonNode::Word(node_value))) => {
                ByteSet::from_bytes(&node_value[read as usize..][..1])
            }
            (CursorPosition::Number(_), Some(JsonNode::Number(node_value))) => {
                number.next_bytes(node_value)
            }
            (CursorPosition::String(_, read, escape), Some(JsonNode::String(node_value))) => {
                escape.next_bytes(&node_value[read as usize..])
            }
            (CursorPosition::Name(member, read, escape), _) => {
                let members = self.members(value, container);
                let read = read as usize;
                let compare_prefix =
                    self.unused_members(value, container, &members[member as usize].0[..read], b"");
                compare_prefix
                    .map(|member| escape.next_bytes(&members[member as usize].0[read..]))
                    .fold(ByteSet::EMPTY, |all, next| all.union(&next))
            }
            (CursorPosition::Other(read), _) => match value.node(JsonNodeId::ROOT) {
                // White space may follow the value. In front of a special token it is more than
                // needed, which is allowed.
                JsonNode::Other(node_value) => {
                    let next = node_value.get(read as usize).and_then(|symbol| symbol.byte());
                    next.map_or(ByteSet::WHITE_SPACE, |byte| ByteSet::range(byte, byte))
                }
                _ => ByteSet::EMPTY,
            },
            _ => ByteSet::EMPTY,
        }
    }

    /// Whether the cursor is in a number, and whether that number is zero.
    pub(super) fn in_number(value: &JsonValue, cursor: ValueCursor) -> Option<bool> {
        match (cursor.position, cursor.position.node().map(|node| value.node(node))) {
            (CursorPosition::Number(_), Some(JsonNode::Number(node_value))) => {
                Some(node_value.is_zero())
            }
            _ => None,
        }
    }

    /// Whether a text spells the value. `number` is the number prefix at the end of the text.
    pub(super) fn is_equal(
        value: &JsonValue,
        cursor: ValueCursor,
        number: &impl Deref<Target = NumberPrefix>,
    ) -> bool {
        match (cursor.position, value.node(JsonNodeId::ROOT)) {
            _ if cursor.container != ContainerId::OUTERMOST => false,
            (CursorPosition::AfterNode, _) => true,
            (CursorPosition::Number(_), JsonNode::Number(node_value)) => number.equals(node_value),
            (CursorPosition::Other(read), JsonNode::Other(node_value)) => {
                read as usize == node_value.len()
            }
            _ => false,
        }
    }

    /// Interns the state of a container that opens.
    fn open_container(&mut self, parent: ContainerId, node: JsonNodeId) -> ContainerId {
        let next = ContainerId::new(self.containers.len());
        let id = *self.opened.entry((parent, node)).or_insert(next);
        if id == next {
            self.held_bytes += CONTAINER_BYTES;
            self.containers.push(ContainerState {
                parent,
                node,
                begun: 0,
                used_members: Box::default(),
            });
        }
        id
    }

    /// Interns the state of a container in which a member, or an element (0), begins.
    fn begin_child(&mut self, container: ContainerId, member: u32) -> ContainerId {
        let next = ContainerId::new(self.containers.len());
        let id = *self.begun_children.entry(BegunChild { container, member }).or_insert(next);
        if id == next {
            let ContainerState { parent, node, begun, ref used_members } =
                self.containers[container.index()];
            let (word, bit) = (member as usize / 64, member % 64);
            let mut used_members = used_members.to_vec();
            used_members.resize(used_members.len().max(word + 1), 0);
            used_members[word] |= 1 << bit;
            self.held_bytes += CONTAINER_BYTES + used_members.len() * 8;
            self.containers.push(ContainerState {
                parent,
                node,
                begun: begun + 1,
                used_members: used_members.into(),
            });
        }
        id
    }
}

impl CursorPosition {
    /// The position after a byte of a word, of which `read` bytes were read.
    fn step_word(word: &[u8], node: JsonNodeId, read: u32, byte: u8) -> Option<CursorPosition> {
        (word.get(read as usize) == Some(&byte)).then_some(())?;
        Some(if read as usize + 1 == word.len() {
            CursorPosition::AfterNode
        } else {
            CursorPosition::Word(node, read + 1)
        })
    }

    /// The position after a byte of a string, of which `read` decoded bytes were read.
    fn step_string(
        string: &[u8],
        node: JsonNodeId,
        read: u32,
        mut escape: EscapeState,
        byte: u8,
    ) -> Option<CursorPosition> {
        let decoded = escape.read(byte)?;
        let rest = string[read as usize..].strip_prefix(decoded.bytes())?;
        match decoded.ends_string {
            true => rest.is_empty().then_some(CursorPosition::AfterNode),
            false => {
                let read = (string.len() - rest.len()) as u32;
                Some(CursorPosition::String(node, read, escape))
            }
        }
    }

    /// The node that is open or expected.
    fn node(self) -> Option<JsonNodeId> {
        match self {
            CursorPosition::Before(node)
            | CursorPosition::Word(node, _)
            | CursorPosition::Number(node)
            | CursorPosition::String(node, ..) => Some(node),
            CursorPosition::Member
            | CursorPosition::Name(..)
            | CursorPosition::Colon(_)
            | CursorPosition::AfterNode
            | CursorPosition::Other(_) => None,
        }
    }
}

#[cfg(test)]
mod tests;
