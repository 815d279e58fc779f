/** Removes secrets from lines of text by patterns: keys, tokens, and passwords in pairs, flags and URLs. */
import { type KnownValues, REMOVED } from './known-values.ts';

/** Matches lines that may contain a secret. Other lines are not examined further, which saves most of the time. */
const SUSPICIOUS = new RegExp(
  [
    /pass|pwd|\bpw|secret|token|key|cred|auth|cookie|psk|bearer|basic|data:|:\/\/|-----BEGIN/,
    /\$(?:1|2[aby]|5|6|y|apr1)\$|eyJ|sha256~|\b[a-z0-9]{6}\.[a-z0-9]{16}|signature=|[?&]sig=|#login=|webhook/,
    /A[KS]IA|AIza|gh[pousr]_|github_pat_|glpat-|npm_|pypi-|hf_|sk-|[rs]k_(?:live|test)_|xox|\d:AA|\bSG\./,
    /mysql|mariadb|last-applied|^\s*Environment|SetCredential|(?:-u|--user)\s/,
  ]
    .map(({ source }) => source)
    .join('|'),
  'i',
);

const PATTERNS: readonly (readonly [RegExp, string])[] = [
  // A private key with escaped line breaks.
  [/-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----|$)/g, REMOVED],
  [/(last-applied-configuration\\*["']?\s{0,8}[:=]).*/g, `$1${REMOVED}`],
  [/^(\s*(?:[A-Za-z]*Environment|SetCredential(?:Encrypted)?)=).*/g, `$1${REMOVED}`],
  [/\beyJ[\w-]{8,}\.[\w-]{4,}(?:\.[\w-]*)?/g, REMOVED],
  [/\bsha256~[\w-]{8,}/g, `sha256~${REMOVED}`],
  // Bootstrap and join tokens.
  [/\b[a-z0-9]{6}\.(?:[a-z0-9]{48}|[a-z0-9]{16})\b/g, REMOVED],
  [/\b((?:[a-z][a-z0-9+.-]{0,20}):\/\/)[^/\s@"'<>?#]{1,512}@/gi, `$1${REMOVED}@`],
  [/\bdata:[\w/+.-]{0,80}(?:;[\w=.-]{1,40}){0,4},[^\s"']{8,}/g, `data:,${REMOVED}`],
  [/\$(?:1|2[aby]|5|6|y|apr1)\$[^\s:"',]{8,}/g, REMOVED],
  [/\bA[KS]IA[0-9A-Z]{16}\b/g, REMOVED],
  [/\b(?:gh[pousr]_|github_pat_|glpat-|xox[abeoprs]-)[\w-]{10,}/g, REMOVED],
  [/\b(?:(?:npm|hf)_[A-Za-z0-9]{30,}|pypi-[\w-]{40,})/g, REMOVED],
  [/\b(?:sk-|[rs]k_(?:live|test)_)[\w-]{16,}/g, REMOVED],
  // Keys of Google, SendGrid and Telegram.
  [/\bAIza[\w-]{30,}/g, REMOVED],
  [/\bSG\.[\w-]{16,}\.[\w-]{16,}/g, REMOVED],
  [/\b(\d{6,12}:)AA[\w-]{30,}/g, `$1${REMOVED}`],
  // The URL of a webhook suffices to send messages.
  [/(\/\/hooks\.slack\.com\/)[\w/-]{8,}/g, `$1${REMOVED}`],
  [/(\/\/[\w.-]{1,128}\/(?:api\/webhooks|webhookb2)\/)[\w@/-]{8,}/g, `$1${REMOVED}`],
  // Signed URLs of object stores, and one-time links to the console.
  [/([?&](?:x-(?:amz|goog)-)?sig(?:nature)?=)[^&\s"'\\]+/gi, `$1${REMOVED}`],
  [/(#login=)[\w-]{8,}/g, `$1${REMOVED}`],
  // Passwords that follow a flag of one letter without a space, and entries of a .netrc file.
  [/(\b(?:mysql|mariadb)[\w-]{0,32}\s(?:[^|;&]{0,512}?\s)?-p)(?![\s"'])[^\s"';|&]+/g, `$1${REMOVED}`],
  [/(\bsshpass\s{1,8}-p\s{0,8})[^\s"']+/g, `$1${REMOVED}`],
  [/(\blogin\s{1,8}\S{1,128}\s{1,8}password\s{1,8})\S+/g, `$1${REMOVED}`],
  // An XML element.
  [/(<[\w:.-]{0,64}(?:password|passwd|passphrase|secret|token|api-?key)>)[^<]+/gi, `$1${REMOVED}`],
  [/(\s(?:-u|--user)[\s=]\s{0,8}["']?[^\s:"']{1,128}:)[^\s"']+/g, `$1${REMOVED}`],
  [/(["']auth["']\s{0,8}:\s{0,8}["'])[^"']+/g, `$1${REMOVED}`],
];
const SCHEME = /\b(bearer|basic)(\s{1,8}|%20)([\w.~+/=-]{6,})/gi;
const FLAG =
  /(--?(?:[\w-]{0,40}-)?(?:password|passwd|passphrase|token|secret|api-key))(\s{1,8})(?!-)("[^"]*"|'[^']*'|\S+)/gi;
const PAIR_NAMES = [
  /pass(?:word|wd|phrase)|[_-]pass|\bpass(?==)|\bpw|pwd|secret|token|api[_-]?key|access[_-]?key(?:[_-]?id)?/,
  /private[_-]?key|key-data|signing[_-]?key|encryption[_-]?key|secret[_-]?key|credentials?|authorization|cookie|psk/,
]
  .map(({ source }) => source)
  .join('|');
const PAIR = new RegExp(`((?:${PAIR_NAMES})\\]?\\\\*["']?\\s{0,8}(?:=>|[:=])\\s{0,8})`, 'gi');
const NO_VALUE = /^(?:true|false|null|undefined|none|nil|<[a-z]+>|\(not shown\)|[|>][+-]?\d?|[{[(].*|map\[.*|\$\(.*)$/i;
/** Matches a YAML field without a value in its line, or with the indicator of a block. */
const OPEN_NAMES = 'pass(?:word|wd|phrase)|secret|token|api[_-]?key|private[_-]?key|credential|psk';
const OPEN_FIELD = new RegExp(
  `^(\\s*)(?:- )?["']?[\\w.-]{0,64}(?:${OPEN_NAMES})s?["']?:\\s{0,8}([|>][+-]?\\d?)?\\s*$`,
  'i',
);
/** Matches a line that is a field of a mapping, which only refers to a secret. */
const FIELD = /^\s*(?:- )?["']?[\w./-]{1,128}["']?:(?:\s|$)/;
const UNIT_VARIABLE = /^\s*(?:[A-Za-z]*Environment|SetCredential(?:Encrypted)?)=/;
/** Matches a line that ends with base64 of a private key, possibly after the prefix of a log. */
const KEY_LINE = /(?:^|\s)[A-Za-z0-9+/=]{40,80}\s*$/;
const KEY_BODY = /^[A-Za-z0-9+/=]{1,80}$/;
const MAX_KEY_LINES = 400;
const MAX_LINE_LENGTH = 256 * 1024;
const CUT_MARGIN = 8 * 1024;

/**
 * Removes secrets from the lines of one text, which must be passed in order, because a private key has several lines.
 */
export class TextRedactor {
  readonly #known: KnownValues;
  /** Maximum number of further lines of the private key that has begun; 0 outside of a private key. */
  #keyLines = 0;
  /** Whether the value of an environment variable in a unit file continues on the next line. */
  #valueContinues = false;
  /** YAML field whose secret value continues on lines with a larger indentation. */
  #openField: { readonly indentation: number; readonly isBlock: boolean } | undefined;
  /** Whether the first lines may be the end of a private key, because the text begins in the middle of a file. */
  #mayBeInKey: boolean;

  constructor(known: KnownValues, beginsInMiddle = false) {
    this.#known = known;
    this.#mayBeInKey = beginsInMiddle;
  }

  /** Returns the line without secrets. `line` must not contain a newline. */
  line(line: string): string {
    const text = line.slice(0, MAX_LINE_LENGTH);
    const isValue = this.#valueContinues;
    this.#valueContinues = (isValue || UNIT_VARIABLE.test(text)) && text.endsWith('\\');
    if (isValue || this.#continuesField(text)) return REMOVED;
    if (this.#mayBeInKey) {
      this.#mayBeInKey = KEY_LINE.test(text);
      if (this.#mayBeInKey) return REMOVED;
    }
    if (this.#keyLines > 0) {
      this.#keyLines -= 1;
      if (text.includes('-----END')) {
        this.#keyLines = 0;
        return REMOVED;
      }
      if (KEY_BODY.test(text.trim().split(/\s+/).at(-1) ?? '')) return REMOVED;
      // Headers of an encrypted key and empty lines may precede the base64 lines of a key.
      if (!/^\s*$|^\s*(?:Proc-Type|DEK-Info):/.test(text)) this.#keyLines = 0;
    }
    const begins = /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----/.test(text);
    if (begins && !/-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----/.test(text) && !text.includes('\\n'))
      this.#keyLines = MAX_KEY_LINES;
    const result = redactForms(this.#known.remove(text));
    // The line was cut. The end of the remaining text may be the beginning of a secret that no pattern matches, so it
    // is removed.
    return text.length < line.length ? `${result.slice(0, -CUT_MARGIN)} <line cut>` : result;
  }

  /** Whether the line belongs to the value of a YAML field whose name denotes a secret. */
  #continuesField(line: string): boolean {
    const open = this.#openField;
    const indentation = line.search(/\S/);
    if (open !== undefined && indentation < 0) return false;
    const isDeeper = open !== undefined && indentation > open.indentation;
    const isItem = open !== undefined && indentation === open.indentation && /^\s*- /.test(line);
    if (open !== undefined && (isDeeper || isItem) && (open.isBlock || !FIELD.test(line))) return true;
    const [, before, indicator] = OPEN_FIELD.exec(line) ?? [];
    this.#openField =
      before === undefined ? undefined : { indentation: before.length, isBlock: indicator !== undefined };
    return false;
  }

  /** Removes secrets from a text with several lines. */
  text(text: string): string {
    return text
      .split('\n')
      .map((line) => this.line(line))
      .join('\n');
  }
}

function redactForms(line: string): string {
  if (!SUSPICIOUS.test(line)) return line;
  let text = line;
  for (const [pattern, by] of PATTERNS) text = text.replace(pattern, by);
  text = text.replace(SCHEME, (whole, scheme: string, space: string, word: string) =>
    word.length >= 20 || /[A-Z0-9=._]/.test(word) ? `${scheme}${space}${REMOVED}` : whole,
  );
  text = text.replace(FLAG, (_whole, flag: string, space: string) => `${flag}${space}${REMOVED}`);
  return withoutPairs(text);
}

/**
 * Removes values from pairs such as `password=x` or `"token": "x"`, also with escaped quotes. A value ends at its
 * closing quote or at white space.
 */
function withoutPairs(line: string): string {
  let result = '';
  let kept = 0;
  PAIR.lastIndex = 0;
  for (let match = PAIR.exec(line); match !== null; match = PAIR.exec(line)) {
    const start = match.index + match[0].length;
    const [begin, end] = valueAt(line, start, /authorization|cookie/i.test(match[0]));
    const value = line.slice(begin, end);
    if (value === '' || NO_VALUE.test(value)) continue;
    result += line.slice(kept, begin) + REMOVED;
    kept = end;
    PAIR.lastIndex = Math.max(end, start);
  }
  return kept === 0 ? line : result + line.slice(kept);
}

function valueAt(line: string, start: number, wholeLine: boolean): readonly [number, number] {
  const quote = /^\\*["'`]/.exec(line.slice(start, start + 16))?.[0];
  if (quote !== undefined) {
    const begin = start + quote.length;
    for (let at = line.indexOf(quote, begin); at >= 0; at = line.indexOf(quote, at + 1)) {
      // An escaped quote within a value in unescaped quotes does not end the value.
      if (quote.length > 1 || line[at - 1] !== '\\') return [begin, at];
    }
    return [begin, line.length];
  }
  if (wholeLine) return [start, line.length];
  const length = line.slice(start).search(/[\s&"'`]/);
  return [start, length < 0 ? line.length : start + length];
}
