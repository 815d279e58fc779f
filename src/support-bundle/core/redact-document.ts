/** Redacts lines of logs, which may contain JSON, and files with environment variables. */
import { type KnownValues, REMOVED } from './known-values.ts';
import { redactObject } from './redact-object.ts';
import { TextRedactor } from './redact-text.ts';

/** Matches a line with a JSON object, optionally after the prefix of the CRI format. */
const JSON_LINE = /^((?:\S{1,64} (?:stdout|stderr) [FP] )?)(\{.*\})\s*$/;
const MAX_JSON_LINE = 256 * 1024;

/** Returns a function that redacts the lines of one log. Call it for each line in order. */
export function logRedactor(known: KnownValues, beginsInMiddle = false): (line: string) => string {
  const redactor = new TextRedactor(known, beginsInMiddle);
  return (line) => {
    const [, prefix = '', json] = (line.length <= MAX_JSON_LINE && JSON_LINE.exec(line)) || [];
    if (json !== undefined) {
      try {
        return prefix + JSON.stringify(redactObject(JSON.parse(json), known));
      } catch {
        // The line looks like JSON but is not valid, so it is redacted as text.
      }
    }
    return redactor.line(line);
  };
}

/**
 * Returns a function that removes values of environment variables, also if a value continues on the next line. Comments
 * and names are kept.
 */
export function environmentRedactor(known: KnownValues): (line: string) => string {
  const redactor = new TextRedactor(known);
  let continues = false;
  return (line) => {
    const isValue = continues;
    continues = line.endsWith('\\');
    if (isValue) return REMOVED;
    const [, name] = /^\s*((?:export\s+)?[A-Za-z_]\w*=)/.exec(line) ?? [];
    if (name !== undefined) return name + REMOVED;
    return /^\s*(?:#|$)/.test(line) ? redactor.line(line) : REMOVED;
  };
}
