/** Texts of containers and of other users, without characters that could mislead the reader. */

const ESC = String.fromCharCode(0x1b);
const BEL = String.fromCharCode(0x07);
const CSI = String.fromCharCode(0x9b);
const CSI_REST = '[0-?]*[ -/]*[@-~]?';
/** Matches CSI, OSC, DCS and other escape sequences. An unterminated sequence ends at the end of the line. */
const ESCAPES = new RegExp(
  `${ESC}(?:\\[${CSI_REST}|[\\]PX^_][^${BEL}${ESC}]*(?:${BEL}|${ESC}\\\\)?|[ -/]*[0-~]?)|${CSI}${CSI_REST}`,
  'g',
);
const CONTROLS = /(?!\t)\p{Cc}/gu;
/** Matches direction marks, embeddings, overrides and isolates, and invisible and line-separating characters. */
const HIDDEN = /[\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}]/gu;

/** Replaces characters that could affect the page, or a terminal to which the text is copied. */
export function sanitizeText(text: string): string {
  return text
    .replaceAll(ESCAPES, '')
    .replaceAll(CONTROLS, (character) => `\\x${hex(character, 2)}`)
    .replaceAll(HIDDEN, (character) => `\\u{${hex(character, 4)}}`);
}

const hex = (character: string, digits: number): string =>
  (character.codePointAt(0) ?? 0).toString(16).padStart(digits, '0');

/** Characters of which `sanitizeText` keeps each one. Most texts have no others. */
const HARMLESS = /^[\t\n\x20-\x7e]*$/;

/** `sanitizeText` for texts of several lines. Line breaks are kept. */
export const sanitizeLines = (text: string): string =>
  HARMLESS.test(text) ? text : text.split('\n').map(sanitizeText).join('\n');
