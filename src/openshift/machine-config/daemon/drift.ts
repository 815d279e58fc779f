/** Detects files that differ from the config. Reports or repairs them, as the pool's annotation specifies. */

import type { Node } from '../../../api/generated/core/v1.ts';
import { resources } from '../../../api/resources.ts';
import { countText } from '../../../base/text/count-text.ts';
import { ON_DRIFT } from '../kinds/machine-config-types.ts';
import type { MachineConfigDaemonOptions } from './deps.ts';
import type { Note } from './host-record.ts';
import { planChange } from './plan-change.ts';

interface DriftParts {
  note(): Note;
  event(node: Node, type: 'Normal' | 'Warning', reason: string, message: string): void;
}

export interface DriftWatch {
  /** Describes the difference as upstream does. Returns undefined if there is no difference, or after a repair. */
  check(node: Node): Promise<string | undefined>;
}

const SHOWN = 3;
/** Pattern for the names of rendered configs, `rendered-<pool>-<hash>`. */
const RENDERED = /^rendered-(.+)-[0-9a-f]+$/;

export function watchDrift(options: MachineConfigDaemonOptions, parts: DriftParts): DriftWatch {
  const { client, files, units, log } = options;
  let last = '';
  let repairs = false;
  const mayRepair = async (config: string): Promise<boolean> => {
    const pool = RENDERED.exec(config)?.[1];
    if (pool === undefined) return false;
    try {
      const { metadata } = await client.resource(resources.machineConfigPools).get(pool);
      repairs = metadata?.annotations?.[ON_DRIFT] === 'repair';
    } catch {
      // The API server is unreachable or the pool does not exist, so the last known setting is used.
    }
    return repairs;
  };
  return {
    async check(node) {
      const { applied } = parts.note();
      const forced = await files.takeForce();
      const differences = await files.differences();
      if (differences.length === 0) {
        last = '';
        return undefined;
      }
      const shown = differences.slice(0, SHOWN).join('; ');
      const more = differences.length > SHOWN ? `; and ${differences.length - SHOWN} more` : '';
      const reason = `unexpected on-disk state validating against ${applied.name}: ${shown}${more}`;
      if (reason !== last) {
        log.warn('config drift detected', { config: applied.name, difference: shown });
        parts.event(node, 'Warning', 'ConfigDriftDetected', reason);
      }
      last = reason;
      if (!(await mayRepair(applied.name ?? '')) && !forced) return reason;
      const plan = await planChange(applied, applied, {}, options);
      if (plan.unreconcilable !== undefined) return reason;
      await files.apply(plan.tree, parts.note());
      if (differences.some((line) => line.includes('/etc/systemd/system/'))) await units?.daemonReload();
      log.info('config drift repaired', { config: applied.name, files: differences.length });
      parts.event(
        node,
        'Normal',
        'ConfigDriftRepaired',
        `restored ${countText(differences.length, 'file')} to ${applied.name}`,
      );
      last = '';
      return undefined;
    },
  };
}
