// SPDX-License-Identifier: GPL-2.0-only
//! The files `events/SYSTEM/EVENT/format`.

/// Where a field's bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A number, or an array, in the event itself.
    Fixed,
    /// Size and place, from the event's begin, are in the event.
    DataLoc,
    /// The same, from the end of the field.
    RelLoc,
}

/// A field of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldFormat {
    /// Its name.
    pub name: String,
    /// Where it begins, bytes.
    pub offset: usize,
    /// Bytes.
    pub size: usize,
    /// It may be negative.
    pub signed: bool,
    /// Where its bytes are.
    pub place: Place,
}

/// An event's description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventFormat {
    /// Its name.
    pub name: String,
    /// Its id in the ring buffer.
    pub id: u16,
    /// Its fields, the common ones too.
    pub fields: Vec<FieldFormat>,
}

impl EventFormat {
    /// Reads a description.
    ///
    /// # Errors
    /// What is missing or wrong, in words.
    pub fn parse(text: &str) -> Result<EventFormat, String> {
        let said = |key: &str| {
            let mut lines = text.lines();
            lines.find_map(|line| Some(line.strip_prefix(key)?.trim().to_string()))
        };
        let name = said("name:").ok_or("there is no name")?;
        let id = said("ID:").ok_or("there is no ID")?;
        let id = id.parse().map_err(|_| format!("ID {id:?} is no number"))?;
        let lines = text
            .lines()
            .filter(|line| line.trim().starts_with("field:"));
        let fields: Vec<FieldFormat> = lines.map(field).collect::<Result<_, String>>()?;
        if fields.is_empty() {
            return Err("there are no fields".to_string());
        }
        Ok(EventFormat { name, id, fields })
    }

    /// A field by its name.
    pub fn field(&self, name: &str) -> Option<&FieldFormat> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// A number of an event's bytes; signed ones are extended.
    pub fn number(&self, data: &[u8], name: &str) -> Option<u64> {
        self.field(name)?.number(data)
    }

    /// A text of an event's bytes, up to its NUL.
    pub fn text(&self, data: &[u8], name: &str) -> Option<String> {
        let bytes = self.field(name)?.bytes(data)?;
        let end = bytes.iter().position(|byte| *byte == 0);
        Some(String::from_utf8_lossy(&bytes[..end.unwrap_or(bytes.len())]).into_owned())
    }
}

impl FieldFormat {
    /// Its bytes among an event's.
    pub fn bytes<'a>(&self, data: &'a [u8]) -> Option<&'a [u8]> {
        let fixed = data.get(self.offset..self.offset.checked_add(self.size)?)?;
        let base = match self.place {
            Place::Fixed => return Some(fixed),
            Place::DataLoc => 0,
            Place::RelLoc => self.offset + self.size,
        };
        let said = u32::from_le_bytes(fixed.try_into().ok()?);
        let (at, size) = ((said & 0xffff) as usize + base, (said >> 16) as usize);
        data.get(at..at + size)
    }

    fn number(&self, data: &[u8]) -> Option<u64> {
        let bytes = self.bytes(data)?;
        if self.place != Place::Fixed || bytes.len() > 8 {
            return None;
        }
        let mut wide = [0; 8];
        wide[..bytes.len()].copy_from_slice(bytes);
        let value = u64::from_le_bytes(wide);
        let unused = 64 - 8 * bytes.len() as u32;
        Some(match self.signed && unused < 64 {
            true => ((value << unused) as i64 >> unused) as u64,
            false => value,
        })
    }
}

/// `field:TYPE NAME; offset:N; size:N; signed:N;`
fn field(line: &str) -> Result<FieldFormat, String> {
    let wrong = || format!("a field is not understood: {:?}", line.trim());
    let mut declaration = None;
    let (mut offset, mut size, mut signed) = (None, None, false);
    for part in line.trim().split(';') {
        match part.trim().split_once(':') {
            Some(("field", text)) => declaration = Some(text.trim()),
            Some(("offset", number)) => offset = number.parse().ok(),
            Some(("size", number)) => size = number.parse().ok(),
            Some(("signed", number)) => signed = number == "1",
            _ => {}
        }
    }
    let declaration = declaration.ok_or_else(wrong)?;
    let plain = declaration.split('[').next().unwrap_or(declaration).trim();
    let mut last = plain.rsplit([' ', '*', '\t']);
    let mut name = last.next().unwrap_or_default();
    // `__data_loc char[] name`: the name comes after the brackets.
    let place = match declaration.split(' ').next() {
        Some("__data_loc") => Place::DataLoc,
        Some("__rel_loc") => Place::RelLoc,
        _ => Place::Fixed,
    };
    if place != Place::Fixed {
        name = declaration.rsplit(' ').next().unwrap_or_default();
    }
    if name.is_empty() {
        return Err(wrong());
    }
    Ok(FieldFormat {
        name: name.to_string(),
        offset: offset.ok_or_else(wrong)?,
        size: size.ok_or_else(wrong)?,
        signed,
        place,
    })
}
