//! Columns for a person.

/// Rows under their headings, each column as wide as it needs. Ends with a line feed.
pub(super) fn table(headings: &[&str], rows: &[Vec<String>]) -> String {
    let width = |s: &str| s.chars().count();
    let mut widths: Vec<usize> = headings.iter().map(|h| width(h)).collect();
    for row in rows {
        for (column, cell) in widths.iter_mut().zip(row) {
            *column = (*column).max(width(cell));
        }
    }
    let line = |cells: &[&str]| {
        let padded: Vec<String> = cells.iter().zip(&widths).map(|(cell, w)| format!("{cell:<w$}", w = *w)).collect();
        format!("{}\n", padded.join("  ").trim_end())
    };
    let mut text = line(headings);
    for row in rows {
        text.push_str(&line(&row.iter().map(String::as_str).collect::<Vec<_>>()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [vec!["archive".into(), "3".into()], vec!["live".into(), "12000".into()]];
        assert_eq!(table(&["OUTPUT", "RECORDS"], &rows), "OUTPUT   RECORDS\narchive  3\nlive     12000\n");
    }
}
