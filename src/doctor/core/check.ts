/** Definition of a check, and helpers for its findings. */
import { bytesText as joinedBytesText } from '../../base/text/bytes-text.ts';
import type { FactName, Facts, Finding, Group, HostFacts, Result } from '../port.ts';

export interface Check {
  readonly id: string;
  readonly title: string;
  readonly group: Group;
  /** Whether the check also runs before an installation. */
  readonly preflight: boolean;
  /** Text for the documentation: the compared values and their limits. */
  readonly explanation: string;
  readonly needs: readonly FactName[];
  run(facts: Facts): readonly Finding[];
}

export interface CheckSpec<N extends FactName> {
  readonly id: string;
  readonly title: string;
  readonly group: Group;
  readonly preflight?: boolean;
  readonly explanation: string;
  /** Facts that the check needs. It runs only if all of them are known. */
  readonly needs: readonly N[];
  /** Returns the findings. An empty list means `ok` without further evidence. */
  run(facts: Pick<Facts, N>): readonly Finding[];
}

export function check<const N extends FactName>(spec: CheckSpec<N>): Check {
  return { ...spec, preflight: spec.preflight ?? false, run: (facts) => spec.run(facts) };
}

export const ok = (evidence: string): Finding => ({ result: 'ok', evidence });
export const skipped = (evidence: string): Finding => ({ result: 'skipped', evidence });
export const unknown = (evidence: string, fix?: string): Finding => finding('unknown', evidence, fix);
export const warning = (evidence: string, fix: string): Finding => finding('warning', evidence, fix);
export const error = (evidence: string, fix: string): Finding => finding('error', evidence, fix);

const finding = (result: Result, evidence: string, fix: string | undefined): Finding =>
  fix === undefined ? { result, evidence } : { result, evidence, fix };

/** Returns the findings. If there are none, returns one that states success with the evidence. */
export const orOk = (findings: readonly Finding[], evidence: string): readonly Finding[] =>
  findings.length === 0 ? [ok(evidence)] : findings;

/** Quotes text of the machine so that it is one word of a shell command. */
export function shell(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Option `--root` for commands of this program; empty if the root is `/`. */
export const rootFlag = (root: string): string => (root === '/' ? '' : ` --root ${shell(root)}`);

/** Command that restarts the host process, or starts it if it is not running. */
export function restartCommand({ root, pid }: Pick<HostFacts, 'root' | 'pid'>): string {
  if (root === '/') return 'systemctl restart hyperedge';
  const run = `hyperedge run${rootFlag(root)}`;
  return pid === undefined ? run : `kill ${pid}; while kill -0 ${pid} 2>/dev/null; do sleep 1; done; ${run}`;
}

/** Command that writes a drop-in of the bootstrap file. `lines` are the lines after `apiVersion` and `kind`. */
export function writeDropIn({ bootstrapFile }: Pick<HostFacts, 'bootstrapFile'>, name: string, lines: string): string {
  const directory = `${bootstrapFile}.d`;
  const text = `apiVersion: hyperedge.dev/v1\\nkind: Bootstrap\\n${lines}\\n`;
  return `mkdir -p ${shell(directory)} && printf ${shell(text)} > ${shell(`${directory}/${name}`)}`;
}

export const bytesText = (bytes: number): string => joinedBytesText(bytes, ' ');

export const percent = (share: number): string => `${Math.round(share * 100)} %`;
