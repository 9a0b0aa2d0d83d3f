//! Bounds of ranges as text: which relation, in which order of its key, the key's values as the server writes them.
//!
//! A bound is stored, and read again by a later life. What it is worth depends on the relation and on the order in which it lies (types
//! and collations of the key's columns): in another order the ranges between the same bounds hold other rows. So a bound says both.

use contract::serde_json::{self, Value as Json, json};
use kernel::id;

use crate::pgoutput::RelationId;

/// A place in the key space: its range ends with this key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Bound {
    pub(super) relation: RelationId,
    pub(super) order: String,
    pub(super) key: Vec<String>,
}

impl Bound {
    pub(super) fn written(&self) -> id::Bound {
        let head = [json!(self.relation.0), json!(self.order)].into_iter();
        let values = head.chain(self.key.iter().map(|value| json!(value)));
        id::Bound::from(Json::Array(values.collect()).to_string())
    }

    /// `None` if it is no bound of this source.
    pub(super) fn read(bound: &id::Bound) -> Option<Self> {
        let Ok(Json::Array(values)) = serde_json::from_str(bound.as_str()) else { return None };
        let [relation, order, key @ ..] = values.as_slice() else { return None };
        let relation = relation.as_u64().and_then(|number| u32::try_from(number).ok())?;
        let key: Option<Vec<String>> = key.iter().map(|value| value.as_str().map(str::to_owned)).collect();
        Some(Self { relation: RelationId(relation), order: order.as_str()?.to_owned(), key: key.filter(|key| !key.is_empty())? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_read_as_it_was_written_whatever_is_in_the_key() {
        for key in [vec!["17"], vec![""], vec!["\"quo\\ted\"", "it's\n☃", "{a,b}"]] {
            let key = key.into_iter().map(str::to_owned).collect();
            let bound = Bound { relation: RelationId(4_000_000_000), order: "\"id\" bigint".into(), key };
            assert_eq!(Bound::read(&bound.written()), Some(bound));
        }
        let bound = Bound { relation: RelationId(7), order: "\"id\" bigint".into(), key: vec!["1".into()] };
        assert_eq!(bound.written().as_str(), r#"[7,"\"id\" bigint","1"]"#);
    }

    #[test]
    fn what_another_source_wrote_is_no_bound() {
        for text in [
            "",
            "17",
            "[]",
            "[7]",
            "[7,\"o\"]",
            "[\"7\",\"o\",\"1\"]",
            "[7,\"o\",1]",
            "[7,1,\"1\"]",
            "{}",
            "[5000000000,\"o\",\"1\"]",
        ] {
            assert_eq!(Bound::read(&id::Bound::from(text)), None, "{text}");
        }
    }
}
