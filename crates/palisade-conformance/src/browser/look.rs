//! Accessibility checks of a page.

use super::Page;
use std::path::Path;

/// Compares the colour of every visible text with its background, as accessibility guidelines measure
/// contrast: 4.5 to 1.
const CONTRAST: &str = r#"(() => {
    const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
    const rgba = (colour) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data]; };
    const light = ([r, g, b]) => { const c = [r, g, b].map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2]; };
    const ground = (element) => {
        const layers = [];
        for (let e = element; e; e = e.parentElement) { const c = rgba(getComputedStyle(e).backgroundColor); if (c[3] > 0) layers.push(c); if (c[3] === 255) break; }
        return layers.reverse().reduce((under, over) => under.map((v, i) => v + (over[i] - v) * over[3] / 255), [255, 255, 255]);
    };
    const poor = new Set();
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const element = walker.currentNode.parentElement;
        if (!walker.currentNode.data.trim() || element.closest('script, style, svg, .sr, .absent, .skip') || !element.offsetParent) continue;
        const [a, b] = [light(rgba(getComputedStyle(element).color)), light(ground(element))].sort((x, y) => y - x);
        if ((a + 0.05) / (b + 0.05) < 4.5) poor.add(element.className + ': ' + walker.currentNode.data.trim().slice(0, 30));
    }
    return [...poor].join('\n');
})()"#;

/// Controls and regions without a name, and pictures without a title.
const NAMES: &str = "[...document.querySelectorAll('button, input, select, textarea, a, [role=region], [role=group], svg[role=img]')]
    .filter((e) => e.tagName === 'svg' ? !e.querySelector('title') : !(e.getAttribute('aria-label') || e.textContent.trim() || e.labels?.length))
    .map((e) => e.outerHTML.slice(0, 80)).join('\\n')";

/// Elements that extend beyond the window, unless something around them scrolls.
const WIDTH: &str = "(() => {
    if (document.documentElement.scrollWidth <= innerWidth) return '';
    const scrolls = (e) => e && e !== document.body && e !== document.documentElement && (getComputedStyle(e).overflowX !== 'visible' || scrolls(e.parentElement));
    const wide = [...document.body.querySelectorAll('*')].filter((e) => e.getBoundingClientRect().right > innerWidth + 0.5 && !scrolls(e.parentElement));
    return document.documentElement.scrollWidth + ' pixels: ' + wide.map((e) => e.outerHTML.slice(0, 80)).join('\\n');
})()";

impl Page<'_> {
    /// Texts that are hard to read because they are too similar to their background, one per line.
    pub fn poor_contrast(&mut self) -> String {
        self.text(CONTRAST)
    }

    /// Elements that can be used or looked at but have no name for screen readers, one per line.
    pub fn without_names(&mut self) -> String {
        self.text(NAMES)
    }

    /// What makes the page wider than its window, one element per line; empty if it is not wider.
    pub fn too_wide(&mut self) -> String {
        self.text(WIDTH)
    }

    /// Keeps a picture of the page in the folder that `PALISADE_PICTURES` names, for manual inspection.
    pub fn keep_picture(&mut self, name: &str) {
        if let Some(folder) = std::env::var_os("PALISADE_PICTURES") {
            self.picture(&Path::new(&folder).join(format!("{name}.png")));
        }
    }
}
