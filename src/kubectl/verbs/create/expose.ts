/** `expose`: creates a service for a workload, pod or service. */
import type { VerbContext } from '../../port.ts';
import { withSession } from '../../run.ts';
import { currentObject, targetsOf } from '../../targets.ts';
import { createObject } from './create.ts';
import { serviceFor } from './run-objects.ts';

export const run = (context: VerbContext): Promise<number> =>
  withSession(context, async (session) => {
    // --selector contains the labels of the pods.
    for (const target of await targetsOf(session, context.args, { selector: '' })) {
      const object = await currentObject(session, target);
      await createObject(session, serviceFor(context, object), undefined, 'exposed');
    }
    return 0;
  });
