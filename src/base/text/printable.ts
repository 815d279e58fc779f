/** Makes text of other hosts and of tenants safe for a terminal. */

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is replaced
const UNPRINTABLE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;

/**
 * Replaces control characters, except tabs and newlines, by escapes, so that the text cannot control the terminal.
 * Source: k8s.io/cli-runtime/pkg/printers terminal.go, which escapes only ESC and CR.
 */
export const printable = (text: string): string => text.replaceAll(UNPRINTABLE, shown);

/** Like `printable`, but on one line, so that the text cannot imitate other lines of the output. */
export const printableLine = (text: string): string => printable(text.replaceAll(/[\t\n]+/g, ' '));

function shown(char: string): string {
  const code = char.charCodeAt(0);
  if (char === '\r') return '\\r';
  return code < 0x80 ? `^${String.fromCharCode((code + 64) & 0x7f)}` : `\\u${code.toString(16).padStart(4, '0')}`;
}
