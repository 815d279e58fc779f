/** Events of revisions. Source of reasons and texts: library-go, static pod controllers (revision, installer). */

import type { Transition } from '../operators/transition-events-port.ts';
import type { NodeProgress, Revision } from './core/index.ts';

/** The first revision contains the files with which the hosts started. */
const FIRST = 1;

export function creationEvents({ revision, reason }: Pick<Revision, 'revision' | 'reason'>): Transition[] {
  if (revision <= FIRST) return [];
  return [
    { type: 'Normal', reason: 'RevisionCreate', message: `Revision ${revision} created because ${reason}` },
    { type: 'Normal', reason: 'RevisionTriggered', message: `new revision ${revision} triggered by "${reason}"` },
  ];
}

/** Events for changes on the masters. `because`: reason of the newest revision. */
export function progressEvents(
  before: readonly NodeProgress[],
  after: readonly NodeProgress[],
  because: string,
): Transition[] {
  const known = new Map(before.map((each) => [each.nodeName, each]));
  return after.flatMap((now): Transition[] => {
    const { nodeName, currentRevision, targetRevision, lastFailedRevision, lastFailedCount, errors } = now;
    const old = known.get(nodeName);
    if (old === undefined) return [];
    const from = old.currentRevision;
    const events: Transition[] = [];
    if (targetRevision > 0 && targetRevision !== old.targetRevision) {
      const message = `Updating node "${nodeName}" from revision ${from} to ${targetRevision} because ${because}`;
      events.push({ type: 'Normal', reason: 'NodeTargetRevisionChanged', message });
    }
    if (currentRevision !== from && from > 0) {
      const message = `Updated node "${nodeName}" from revision ${from} to ${currentRevision} because static pod is ready`;
      events.push({ type: 'Normal', reason: 'NodeCurrentRevisionChanged', message });
    }
    const isNewFailure = lastFailedRevision !== old.lastFailedRevision || lastFailedCount !== old.lastFailedCount;
    if (lastFailedRevision > 0 && isNewFailure) {
      const message =
        `Failed to install revision ${lastFailedRevision} (attempt ${lastFailedCount}) on node "${nodeName}", ` +
        `which runs revision ${currentRevision}: ${errors.join('; ')}`;
      events.push({ type: 'Warning', reason: 'InstallerPodFailed', message });
    }
    return events;
  });
}
