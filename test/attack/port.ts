/** Interface of an attack case. Each case corresponds to a finding and must fail on every build. */
import type { AttackLab } from './lab.ts';

export interface AttackCase {
  /** Number of the case; cases run in this order. */
  readonly finding: number;
  readonly title: string;
  /** Whether the case must run alone, because it kills components, fills the disk or needs the whole CPU. */
  readonly exclusive?: boolean;
  readonly timeoutMs?: number;
  /** Performs the attack and asserts that it fails. Cleans up what it created on the shared appliance. */
  readonly attack: (lab: AttackLab) => Promise<void>;
}
