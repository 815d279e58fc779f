/** Runs checks over gathered facts. Facts come from the machine and the cluster, so texts are bounded and cleaned. */
import type { CheckReport, DoctorReport, Facts, Finding, GatheredFacts, Result } from '../port.ts';
import { type Check, ok, skipped, unknown } from './check.ts';

const MAX_FINDINGS = 20;
const MAX_TEXT = 600;
/** From the best result to the worst. */
const ORDER: readonly Result[] = ['skipped', 'ok', 'unknown', 'warning', 'error'];

export function diagnose(checks: readonly Check[], facts: GatheredFacts): CheckReport[] {
  return checks.map((each) => reportOf(each, facts));
}

function reportOf(each: Check, facts: GatheredFacts): CheckReport {
  const { id, title, group } = each;
  const found = findingsOf(each, facts);
  const shown = found
    .toSorted((left, right) => ORDER.indexOf(right.result) - ORDER.indexOf(left.result))
    .slice(0, MAX_FINDINGS)
    .map(cleaned);
  const more = found.length - shown.length;
  const result = shown[0]?.result ?? 'ok';
  const rest: Finding[] = more > 0 ? [{ result: 'skipped', evidence: `${more} further findings are not shown` }] : [];
  return { id, title, group, result, findings: [...shown, ...rest] };
}

function findingsOf({ needs, run, title }: Check, facts: GatheredFacts): readonly Finding[] {
  const gathered = needs.map((name) => facts[name]);
  const failed = gathered.find((fact) => fact?.state === 'failed');
  if (failed?.state === 'failed') return [unknown(failed.reason)];
  const absent = gathered.find((fact) => fact?.state === 'absent');
  if (absent?.state === 'absent') return [skipped(absent.reason)];
  const values: Partial<Facts> = {};
  for (const name of needs) {
    const fact = facts[name];
    if (fact?.state !== 'known') return [unknown(`the fact ${name} was not gathered`)];
    Object.assign(values, { [name]: fact.value });
  }
  // Every name in `needs` has its value, and `check` restricts `run` to these names.
  const findings = run(values as Facts);
  return findings.length === 0 ? [ok(title)] : findings;
}

/** Removes control, format and bidirectional characters, which a terminal would interpret. */
export function plain(text: string): string {
  const clean = text.slice(0, 4 * MAX_TEXT).replaceAll(/[\p{C}\p{Zl}\p{Zp}]+/gu, ' ');
  const characters = [...clean.trim()];
  return characters.length <= MAX_TEXT ? characters.join('') : `${characters.slice(0, MAX_TEXT).join('')}…`;
}

const cleaned = ({ result, evidence, fix }: Finding): Finding =>
  fix === undefined ? { result, evidence: plain(evidence) } : { result, evidence: plain(evidence), fix: plain(fix) };

export function summarize(
  checks: readonly CheckReport[],
  about: { readonly host: string; readonly version: string; readonly time: string },
): DoctorReport {
  const counts: Record<Result, number> = { ok: 0, skipped: 0, unknown: 0, warning: 0, error: 0 };
  for (const { result } of checks) counts[result] += 1;
  const result = counts.error > 0 ? 'error' : counts.warning + counts.unknown > 0 ? 'warning' : 'ok';
  return { ...about, result, counts, checks };
}

/** Exit code of the command: 0 without problems, 1 with errors, 3 with warnings only. */
export const exitCodeOf = ({ result }: DoctorReport): number => ({ ok: 0, warning: 3, error: 1 })[result];
