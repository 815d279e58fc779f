/** Completion of a command line with flags: determines what is at the cursor and which candidates a shell can offer. */

export interface Candidate {
  readonly value: string;
  /** Description that some shells show beside the value. */
  readonly help?: string;
}

export interface Completion {
  readonly candidates: readonly Candidate[];
  /** Whether the shell also completes paths. */
  readonly paths?: 'file' | 'directory';
  /** Whether the shell adds no space after the value, because the value continues. */
  readonly isPrefix?: boolean;
}

export interface CompletedFlag {
  readonly short?: string;
  readonly takesValue: boolean;
  readonly help: string;
}

export type CursorPlace =
  /** `lead`: text of the current word before the value, such as `--output=`. */
  | { readonly kind: 'value'; readonly flag: string; readonly lead: string; readonly positionals: readonly string[] }
  | { readonly kind: 'flag' }
  | { readonly kind: 'argument'; readonly positionals: readonly string[] }
  /** An argument after `--`. */
  | { readonly kind: 'rest'; readonly positionals: readonly string[] };

/**
 * Determines whether `current`, the word at the cursor, is a flag, a value or an argument. `words`: words between the
 * command and `current`.
 */
export function cursorPlace(
  flags: Readonly<Record<string, CompletedFlag>>,
  words: readonly string[],
  current: string,
): CursorPlace {
  const positionals: string[] = [];
  let pending: string | undefined;
  for (const [index, word] of words.entries()) {
    if (pending !== undefined) pending = undefined;
    else if (word === '--') return { kind: 'rest', positionals: [...positionals, ...words.slice(index + 1)] };
    else if (word.startsWith('-') && word !== '-') pending = flagWaiting(flags, word);
    else positionals.push(word);
  }
  if (pending !== undefined) return { kind: 'value', flag: pending, lead: '', positionals };
  const [, lead = '', name = ''] = /^(--([^=]+)=)/s.exec(current) ?? [];
  if (lead !== '') return { kind: 'value', flag: name, lead, positionals };
  return current.startsWith('-') ? { kind: 'flag' } : { kind: 'argument', positionals };
}

/** The flag in `word` whose value is the next word; undefined if the next word is not its value. */
function flagWaiting(flags: Readonly<Record<string, CompletedFlag>>, word: string): string | undefined {
  const name = word.startsWith('--')
    ? word.slice(2)
    : Object.keys(flags).find((each) => word.length === 2 && flags[each]?.short === word[1]);
  return name !== undefined && Object.hasOwn(flags, name) && flags[name]?.takesValue ? name : undefined;
}

/** Names of the flags that begin with the current word. */
export const flagCandidates = (flags: Readonly<Record<string, CompletedFlag>>, current: string): Candidate[] =>
  Object.entries(flags)
    .map(([name, { help }]) => ({ value: `--${name}`, help }))
    .filter(({ value }) => value.startsWith(current));

/**
 * Candidates among `values` that begin with the current word. `lead`: text of the word before the value, such as
 * `--output=`.
 */
export const matching = (values: readonly (string | Candidate)[], current: string, lead = ''): Candidate[] =>
  values
    .map((each) => (typeof each === 'string' ? { value: each } : each))
    .map((each) => ({ ...each, value: `${lead}${each.value}` }))
    .filter(({ value }) => value.startsWith(current));
