//! The values that cells can hold, as they are written in the program: `Idle` instead of 0.

use palisade::Limits;
use palisade::program::written::{Domain, Program, Shared};

/// The values of each cell, or why they are not known.
pub(crate) type CellTexts = Result<Vec<CellText>, String>;

/// The values of a cell, in words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct CellText {
    /// `x`, or `a[0]`.
    pub(crate) cell: String,
    pub(crate) values: Vec<String>,
}

/// The values of all cells, within limits.
pub(crate) fn values(program: &Program, limits: &Limits) -> CellTexts {
    let found = palisade::possible_values(program, limits).map_err(|reason| reason.to_string())?;
    // The cells are in the order of the declarations.
    let of_cells = |shared: &Shared| std::iter::repeat_n(shared.ty.domain, shared.len.unwrap_or(1) as usize);
    let domains: Vec<Domain> = program.shared.iter().flat_map(of_cells).collect();
    assert_eq!(domains.len(), found.len(), "each cell has values");
    let shown = found.into_iter().zip(domains).map(|(found, domain)| CellText {
        cell: found.cell,
        values: found.values.iter().map(|&value| in_words(program, domain, value)).collect(),
    });
    Ok(shown.collect())
}

fn in_words(program: &Program, domain: Domain, value: i64) -> String {
    let name = match (domain, usize::try_from(value)) {
        (Domain::Enum { which, .. }, Ok(number)) => {
            program.enums.get(which as usize).and_then(|known| known.values.get(number))
        }
        (Domain::Bool, Ok(number @ 0..=1)) => return (number == 1).to_string(),
        _ => None,
    };
    name.map_or_else(|| value.to_string(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;
    use palisade::{Language, Source};

    #[test]
    fn values_have_the_names_of_their_domains() {
        let text = "enum State { Idle, Busy }\nshared st[2]: State; shared b: bool; shared n: 0..3;\nprocess P { st[1] = Busy; b = true; n = 2; }\n";
        let input = palisade::read(Source::new("t.pal", text), Language::Pal, None).expect("it is valid");
        let found = values(&input.program, &Limits::unlimited(1)).expect("they are known");
        let found: Vec<String> =
            found.iter().map(|cell| format!("{}: {}", cell.cell, cell.values.join(" "))).collect();
        assert_eq!(found, ["st[0]: Idle", "st[1]: Idle Busy", "b: false true", "n: 0 2"]);
    }
}
