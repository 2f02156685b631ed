//! The programs in a page of the documentation.

/// The code blocks of a language in a text, each with the `pal` block after it.
pub fn examples(text: &str, language: &str) -> Vec<(String, String)> {
    let mut blocks: Vec<(&str, String)> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        match line.strip_prefix("```") {
            Some(info) => {
                inside = !inside;
                if inside {
                    blocks.push((info, String::new()));
                }
            }
            None if inside => {
                let block = &mut blocks.last_mut().expect("pushed at the start of the block").1;
                block.push_str(line);
                block.push('\n');
            }
            None => {}
        }
    }
    let pairs = blocks.windows(2).filter(|pair| pair[0].0 == language);
    pairs
        .map(|pair| {
            assert_eq!(pair[1].0, "pal", "after\n{}", pair[0].1);
            (pair[0].1.clone(), pair[1].1.clone())
        })
        .collect()
}
