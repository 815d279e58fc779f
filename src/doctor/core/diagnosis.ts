/**
 * Runs checks on gathered facts. The facts come from the machine and the cluster, so their texts are limited and
 * cleaned.
 */
import type { CheckReport, DoctorReport, Facts, Finding, GatheredFacts, Result } from '../port.ts';
import { type Check, ok, skipped, unknown } from './check.ts';
import { forHost, type HostCommands } from './commands.ts';

const MAX_FINDINGS = 20;
const MAX_TEXT = 600;
/** Maximum length of a fix. A longer fix is omitted, because a truncated command would have another effect. */
const MAX_FIX = 8000;
/** Results of findings, from the best to the worst. */
const ORDER: readonly Result[] = ['skipped', 'ok', 'unknown', 'warning', 'error'];

/** Runs the checks. `commands` adapts the fixes to this host; without it they contain plain names of programs. */
export function diagnose(checks: readonly Check[], facts: GatheredFacts, commands?: HostCommands): CheckReport[] {
  return checks.map((each) => reportOf(each, facts, commands));
}

function reportOf(each: Check, facts: GatheredFacts, commands: HostCommands | undefined): CheckReport {
  const { id, title, group } = each;
  const found = findingsOf(each, facts);
  const shown = found
    .toSorted((left, right) => ORDER.indexOf(right.result) - ORDER.indexOf(left.result))
    .slice(0, MAX_FINDINGS)
    .map((finding) => cleaned(finding, commands));
  const more = found.length - shown.length;
  const result = shown[0]?.result ?? 'ok';
  const rest: Finding[] = more > 0 ? [{ result: 'skipped', evidence: `${more} further findings are not shown` }] : [];
  return { id, title, group, result, findings: [...shown, ...rest] };
}

function findingsOf({ needs, run, title }: Check, facts: GatheredFacts): readonly Finding[] {
  const gathered = needs.map((name) => facts[name]);
  const failed = gathered.find((fact) => fact?.state === 'failed');
  if (failed?.state === 'failed') {
    // Many facts need the settings. The check of the bootstrap file shows the reason once.
    const { configuration } = facts;
    const isInvalid = configuration?.state === 'known' && configuration.value.problem === failed.reason;
    return [unknown(isInvalid ? 'the bootstrap file is invalid; see bootstrap-file' : failed.reason)];
  }
  const absent = gathered.find((fact) => fact?.state === 'absent');
  if (absent?.state === 'absent') return [skipped(absent.reason)];
  const values: Partial<Facts> = {};
  for (const name of needs) {
    const fact = facts[name];
    if (fact?.state !== 'known') return [unknown(`the fact ${name} was not gathered`)];
    Object.assign(values, { [name]: fact.value });
  }
  // All facts in `needs` are set here, and the type of `check` restricts `run` to them.
  const findings = run(values as Facts);
  return findings.length === 0 ? [ok(title)] : findings;
}

/** Removes control, format and bidirectional characters, because a terminal would interpret them. */
export function plainText(text: string, limit = MAX_TEXT): string {
  const clean = text.slice(0, 4 * limit).replaceAll(/[\p{C}\p{Zl}\p{Zp}]+/gu, ' ');
  const characters = [...clean.trim()];
  return characters.length <= limit ? characters.join('') : `${characters.slice(0, limit).join('')}…`;
}

function cleaned({ result, evidence, fix }: Finding, commands: HostCommands | undefined): Finding {
  const text = fix === undefined || commands === undefined ? fix : forHost(fix, commands);
  if (text === undefined || text.length > MAX_FIX) return { result, evidence: plainText(evidence) };
  return { result, evidence: plainText(evidence), fix: plainText(text, MAX_FIX) };
}

export function summarize(
  checks: readonly CheckReport[],
  about: { readonly host: string; readonly version: string; readonly time: string },
): DoctorReport {
  const counts: Record<Result, number> = { ok: 0, skipped: 0, unknown: 0, warning: 0, error: 0 };
  for (const { result } of checks) counts[result] += 1;
  const result = counts.error > 0 ? 'error' : counts.warning + counts.unknown > 0 ? 'warning' : 'ok';
  return { ...about, result, counts, checks };
}

/** Exit code of the command: 0 if there are no problems, 3 if there are only warnings, 1 if there are errors. */
export const exitCodeOf = ({ result }: DoctorReport): number => ({ ok: 0, warning: 3, error: 1 })[result];
