/**
 * The pod security profiles of a namespace, from its labels and the defaults. Source:
 * k8s.io/pod-security-admission/api.
 */
import type { Labels } from '../../../base/selector.ts';

export const LEVELS = ['privileged', 'baseline', 'restricted'] as const;
export type Level = (typeof LEVELS)[number];

export interface LevelVersion {
  readonly level: Level;
  /** `latest`, or the minor version x of `v1.x`. */
  readonly version: number | 'latest';
}

export const MODES = ['enforce', 'audit', 'warn'] as const;
export type Mode = (typeof MODES)[number];

/** Profiles of the modes enforce, audit and warn. */
export type Policy = Readonly<Record<Mode, LevelVersion>>;

export interface LabelProblem {
  readonly label: string;
  readonly value: string;
  readonly message: string;
}

export const PRIVILEGED_POLICY: Policy = {
  enforce: { level: 'privileged', version: 'latest' },
  audit: { level: 'privileged', version: 'latest' },
  warn: { level: 'privileged', version: 'latest' },
};

export const LABEL_PREFIX = 'pod-security.kubernetes.io/';
export const levelLabel = (mode: Mode): string => `${LABEL_PREFIX}${mode}`;
export const versionLabel = (mode: Mode): string => `${LABEL_PREFIX}${mode}-version`;

export const LEVEL_MESSAGE = `must be one of ${LEVELS.join(', ')}`;
export const VERSION_MESSAGE = 'must be "latest" or "v1.x"';

export function parseLevel(text: string): Level | undefined {
  return LEVELS.find((level) => level === text);
}

export function parseVersion(text: string): LevelVersion['version'] | undefined {
  if (text === 'latest') return 'latest';
  const minor = /^v1\.(0|[1-9]\d{0,5})$/.exec(text)?.[1];
  return minor === undefined ? undefined : Number(minor);
}

/** Text such as `restricted:latest`. */
export function levelVersionText({ level, version }: LevelVersion): string {
  return `${level}:${version === 'latest' ? version : `v1.${version}`}`;
}

export const isSameLevelVersion = (a: LevelVersion, b: LevelVersion): boolean =>
  a.level === b.level && a.version === b.version;

export const isFullyPrivileged = (policy: Policy): boolean =>
  MODES.every((mode) => policy[mode].level === 'privileged');

/** Compares two levels. The result is positive if `a` is stricter. */
export const compareLevels = (a: Level, b: Level): number => LEVELS.indexOf(a) - LEVELS.indexOf(b);

/**
 * Returns a policy even for invalid labels. An invalid level counts as `restricted` for enforcement, and as
 * `privileged` for audits and warnings. An invalid version counts as `latest`.
 */
export function policyOf(
  labels: Labels | undefined,
  defaults: Policy,
): { readonly policy: Policy; readonly problems: readonly LabelProblem[] } {
  const policy: Record<Mode, LevelVersion> = { ...defaults };
  const problems: LabelProblem[] = [];
  const read = (label: string): string | undefined =>
    labels !== undefined && Object.hasOwn(labels, label) ? labels[label] : undefined;
  for (const mode of MODES) {
    let { level, version } = policy[mode];
    const levelText = read(levelLabel(mode));
    if (levelText !== undefined) {
      const parsed = parseLevel(levelText);
      if (parsed === undefined) {
        problems.push({ label: levelLabel(mode), value: levelText, message: LEVEL_MESSAGE });
      }
      level = parsed ?? (mode === 'enforce' ? 'restricted' : 'privileged');
    }
    const versionText = read(versionLabel(mode));
    if (versionText !== undefined) {
      const parsed = parseVersion(versionText);
      if (parsed === undefined) {
        problems.push({ label: versionLabel(mode), value: versionText, message: VERSION_MESSAGE });
      }
      version = parsed ?? 'latest';
    }
    policy[mode] = { level, version };
  }
  return { policy, problems };
}
