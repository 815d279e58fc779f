/** `apply view-last-applied` and `set-last-applied`: read and write the annotation of client-side apply. */
import { goJson } from '../../core/encode.ts';
import { ClientError } from '../../core/errors.ts';
import { LAST_APPLIED } from '../../core/objects.ts';
import { pathOf } from '../../core/resources.ts';
import { yamlText } from '../../core/yaml-writer.ts';
import { requiredManifests } from '../../manifests.ts';
import type { VerbContext } from '../../port.ts';
import { dryRunOf, printOutcome } from '../../printing.ts';
import { withSession } from '../../run.ts';
import { currentObject, targetsOf } from '../../targets.ts';

export const runView = (context: VerbContext): Promise<number> =>
  withSession(context, async (session) => {
    const { flags, io } = context;
    const format = flags.text('output') || 'yaml';
    if (format !== 'yaml' && format !== 'json')
      throw new ClientError(`Unexpected -o output mode: ${format}, the flag 'output' must be one of yaml|json`);
    for (const target of await targetsOf(session)) {
      const text = (await currentObject(session, target)).metadata?.annotations?.[LAST_APPLIED];
      if (text === undefined) continue;
      const object: unknown = JSON.parse(text);
      io.out(format === 'json' ? `${goJson(object, 2)}\n` : yamlText(object));
    }
    return 0;
  });

export const runSet = (context: VerbContext): Promise<number> =>
  withSession(context, async (session) => {
    const { flags } = context;
    for (const { object } of await requiredManifests(context, 'set-last-applied')) {
      const { resource, namespace } = await session.place(object);
      const path = pathOf(resource, namespace, object.metadata?.name ?? '');
      const live = await session.get(path);
      const known = live.metadata?.annotations?.[LAST_APPLIED];
      if (known === undefined && !flags.bool('create-annotation'))
        throw new ClientError(
          `no last-applied-configuration annotation found on resource: ${object.metadata?.name ?? ''}, to create the annotation, run the command with --create-annotation`,
        );
      const text = `${goJson(object)}\n`;
      if (text === known) {
        await printOutcome(context, live, 'configured');
        continue;
      }
      const body = { metadata: { annotations: { [LAST_APPLIED]: text } } };
      const dryRun = dryRunOf(flags) === 'server' ? 'All' : undefined;
      const after =
        dryRunOf(flags) === 'client'
          ? live
          : await session.send('PATCH', path, { query: { dryRun }, body, contentType: 'application/merge-patch+json' });
      await printOutcome(context, after, 'configured');
    }
    return 0;
  });
