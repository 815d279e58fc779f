/** Redaction of lines of logs, which may contain JSON, and of files with environment variables. */
import { type KnownValues, REMOVED } from './known-values.ts';
import { redactObject } from './redact-object.ts';
import { TextRedactor } from './redact-text.ts';

/** Prefix of a line in CRI's format, a time, or nothing, and the JSON after it. */
const JSON_LINE = /^((?:\S{1,64} (?:stdout|stderr) [FP] )?)(\{.*\})\s*$/;
const MAX_JSON_LINE = 256 * 1024;

/** Returns the function for the lines of one log. */
export function logRedactor(known: KnownValues, beginsInMiddle = false): (line: string) => string {
  const redactor = new TextRedactor(known, beginsInMiddle);
  return (line) => {
    const [, prefix = '', json] = (line.length <= MAX_JSON_LINE && JSON_LINE.exec(line)) || [];
    if (json !== undefined) {
      try {
        return prefix + JSON.stringify(redactObject(JSON.parse(json), known));
      } catch {
        // The line only looks like JSON.
      }
    }
    return redactor.line(line);
  };
}

/** Keeps comments and names of variables. A value that continues on the next line is removed too. */
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
