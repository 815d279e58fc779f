/** Checks of a node's host, which its kubelet runs on request. */
import { decode, list, map, number, object, optional, text } from '../../../base/decode.ts';
import { type Api, hostPath } from '../api/api.ts';

export interface HostFinding {
  readonly result: string;
  readonly evidence: string;
  readonly fix?: string | undefined;
}

export interface HostCheck {
  readonly id: string;
  readonly title: string;
  readonly group: string;
  readonly result: string;
  readonly findings: readonly HostFinding[];
}

export interface HostReport {
  readonly time: string;
  readonly counts: Readonly<Record<string, number>>;
  readonly checks: readonly HostCheck[];
}

const REPORT = object({
  time: text,
  counts: map(number),
  checks: list(
    object({
      id: text,
      title: text,
      group: text,
      result: text,
      findings: list(object({ result: text, evidence: text, fix: optional(text) })),
    }),
  ),
});

export async function runHostChecks(api: Api, node: string, signal: AbortSignal): Promise<HostReport> {
  const path = hostPath(node, '/hyperedge/doctor');
  return decode(REPORT, await api.json<unknown>(path, { method: 'POST', signal }), `checks of node ${node}`);
}

export interface CheckGroup {
  readonly name: string;
  readonly checks: readonly HostCheck[];
  /** Number of checks that found no problem or do not apply to this host. */
  readonly fine: number;
}

const FINE = new Set(['ok', 'skipped']);

/** Checks that found problems, by group, each with the findings that explain its result. */
export function problemsOf({ checks }: HostReport): readonly CheckGroup[] {
  return [...Map.groupBy(checks, ({ group }) => group)].map(([name, members]) => ({
    name,
    checks: members
      .filter(({ result }) => !FINE.has(result))
      .map((check) => ({ ...check, findings: check.findings.filter(({ result }) => !FINE.has(result)) })),
    fine: members.filter(({ result }) => FINE.has(result)).length,
  }));
}

/** Text such as `1 error, 2 warnings, 40 ok`. Results that do not occur are omitted. */
export function countsText(counts: HostReport['counts']): string {
  const words: readonly (readonly [string, string, string])[] = [
    ['error', 'error', 'errors'],
    ['warning', 'warning', 'warnings'],
    ['unknown', 'unknown', 'unknown'],
    ['ok', 'ok', 'ok'],
    ['skipped', 'skipped', 'skipped'],
  ];
  return words
    .flatMap(([name, one, many]) => {
      const count = counts[name] ?? 0;
      return count === 0 ? [] : `${count} ${count === 1 ? one : many}`;
    })
    .join(', ');
}
