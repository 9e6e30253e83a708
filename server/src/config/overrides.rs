//! Partial tables: members of an option type that replace those of another value of it.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeOwned, DeserializeSeed, Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// Members of `T` that override those of another `T`. Each member is checked when it is read, so
/// that faults have the place of the member.
#[derive(Clone, Debug)]
pub struct Overrides<T> {
    members: Map<String, Value>,
    of: PhantomData<fn() -> T>,
}

/// A type whose members can be overridden one by one.
pub trait Overridable: Clone + Default + Serialize + DeserializeOwned {}

impl<T: Clone + Default + Serialize + DeserializeOwned> Overridable for T {}

impl<T> Default for Overrides<T> {
    fn default() -> Self {
        Overrides { members: Map::new(), of: PhantomData }
    }
}

impl<T> PartialEq for Overrides<T> {
    fn eq(&self, other: &Self) -> bool {
        self.members == other.members
    }
}

impl<T> Eq for Overrides<T> {}

impl<T: Overridable> Overrides<T> {
    /// Overrides one member.
    ///
    /// # Errors
    ///
    /// The member is unknown, or its value is not one of `T`.
    pub(crate) fn set(&mut self, name: &str, value: Value) -> Result<(), serde_json::Error> {
        overlaid(&T::default(), [(name.to_owned(), value.clone())])?;
        self.members.insert(name.to_owned(), value);
        Ok(())
    }

    /// Whether the member is overridden.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.members.contains_key(name)
    }

    /// `base` with these members instead of its own.
    pub fn apply(&self, base: &T) -> T {
        if self.members.is_empty() {
            return base.clone();
        }
        // Every member was checked alone. No `T` relates its members to each other.
        overlaid(base, self.members.clone()).unwrap_or_else(|_| base.clone())
    }
}

fn overlaid<T: Overridable>(
    base: &T,
    members: impl IntoIterator<Item = (String, Value)>,
) -> Result<T, serde_json::Error> {
    let mut all = serde_json::to_value(base)?;
    if let Value::Object(all) = &mut all {
        all.extend(members);
    }
    T::deserialize(all)
}

impl<'de, T: Overridable> Deserialize<'de> for Overrides<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(TableVisitor(PhantomData))
    }
}

struct TableVisitor<T>(PhantomData<fn() -> T>);

impl<'de, T: Overridable> Visitor<'de> for TableVisitor<T> {
    type Value = Overrides<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Overrides<T>, A::Error> {
        let mut overrides = Overrides::default();
        while let Some(name) = map.next_key::<String>()? {
            map.next_value_seed(MemberSeed { name, overrides: &mut overrides })?;
        }
        Ok(overrides)
    }
}

/// Reads the value of one member, so that an error has its place.
struct MemberSeed<'o, T> {
    name: String,
    overrides: &'o mut Overrides<T>,
}

impl<'de, T: Overridable> DeserializeSeed<'de> for MemberSeed<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        let value = Value::deserialize(deserializer)?;
        self.overrides.set(&self.name, value).map_err(D::Error::custom)
    }
}
