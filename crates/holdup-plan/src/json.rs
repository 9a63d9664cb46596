//! JSON with the fields in order and with duplicate names, as in plans of MariaDB before 10.6,
//! where each table of a join is a field `table` of the same object.

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// A value of JSON.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Json {
    Object(Vec<(String, Json)>),
    Array(Vec<Json>),
    Text(String),
    Number(f64),
    /// `null`, `true`, `false`.
    Word(Option<bool>),
}

impl Json {
    /// Parses it; none if it is not JSON or nested deeper than 128.
    pub(super) fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// The fields, if it is an object.
    pub(super) fn fields(&self) -> &[(String, Self)] {
        if let Self::Object(fields) = self { fields } else { &[] }
    }

    /// The first field of that name.
    pub(super) fn get(&self, name: &str) -> Option<&Self> {
        self.fields().iter().find(|(field, _)| field == name).map(|(_, value)| value)
    }

    /// A field's text.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        if let Some(Self::Text(text)) = self.get(name) { Some(text) } else { None }
    }

    /// A field's number, even if quoted, as MySQL writes costs.
    pub(super) fn number(&self, name: &str) -> Option<f64> {
        let number = match self.get(name)? {
            Self::Number(number) => *number,
            Self::Text(text) => text.parse().ok()?,
            _ => return None,
        };
        number.is_finite().then_some(number)
    }

    /// Whether a field is `true`.
    pub(super) fn is(&self, name: &str) -> bool {
        self.get(name) == Some(&Self::Word(Some(true)))
    }

    /// Its elements, if it is an array.
    pub(super) fn parts(&self) -> &[Self] {
        if let Self::Array(parts) = self { parts } else { &[] }
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Json;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Word(Some(value)))
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Word(None))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Number(value as f64))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Number(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(Json::Number(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Json, A::Error> {
        let mut parts = Vec::new();
        while let Some(part) = access.next_element()? {
            parts.push(part);
        }
        Ok(Json::Array(parts))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Json, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = access.next_entry()? {
            fields.push(field);
        }
        Ok(Json::Object(fields))
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_doubles_stay() {
        let json = Json::read(r#"{"b":1,"a":"2.5","a":[true,null,{"x":"y"}]}"#).unwrap();
        let names: Vec<&str> = json.fields().iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["b", "a", "a"]);
        assert_eq!((json.number("b"), json.number("a"), json.text("a")), (Some(1.0), Some(2.5), Some("2.5")));
        let (_, last) = json.fields().last().unwrap();
        assert_eq!((last.parts().len(), last.parts()[2].text("x"), json.is("b")), (3, Some("y"), false));
        assert_eq!(Json::read("{"), None);
        assert_eq!(Json::read(&"[".repeat(10_000)), None);
    }
}
