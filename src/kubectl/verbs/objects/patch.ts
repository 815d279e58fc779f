/** `patch`: applies a strategic, merge or JSON patch to an object or subresource. */
import { ClientError } from '../../core/errors.ts';
import { documentsIn } from '../../documents.ts';
import { requiredManifests } from '../../manifests.ts';
import type { VerbContext } from '../../port.ts';
import { dryRunOf, printOutcome, writeQuery } from '../../printing.ts';
import { withSession } from '../../run.ts';
import { currentObject, pathOfTarget, targetsOf } from '../../targets.ts';

const MEDIA_TYPES: Readonly<Record<string, string>> = {
  json: 'application/json-patch+json',
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
};

/** Patches the objects of the files and prints them, without a request (`--local`). */
async function patchLocally(context: VerbContext): Promise<number> {
  const { patchText } = await import('../../kustomize/patching.ts');
  const patch = await patchOf(context);
  for (const { object } of await requiredManifests(context, 'patch'))
    await printOutcome(context, patchText(object, patch, context.flags.text('type')), 'patched');
  return 0;
}

async function patchOf({ flags, system }: VerbContext): Promise<object> {
  if (flags.has('patch') === flags.has('patch-file'))
    throw new ClientError('must specify --patch or --patch-file containing the contents of the patch');
  const text = flags.has('patch')
    ? flags.text('patch')
    : Buffer.from(await system.readFile(flags.text('patch-file'))).toString('utf8');
  const [body] = await documentsIn('patch', text);
  if (typeof body !== 'object' || body === null)
    throw new ClientError(`unable to parse ${JSON.stringify(text)}: the patch must be a mapping or a list`);
  return body;
}

export const run = (context: VerbContext): Promise<number> =>
  context.flags.bool('local') ? patchLocally(context) : patchOnServer(context);

const patchOnServer = (context: VerbContext): Promise<number> =>
  withSession(context, async (session) => {
    const { flags } = context;
    const contentType = MEDIA_TYPES[flags.text('type')];
    if (contentType === undefined)
      throw new ClientError(`--type must be one of [json merge strategic], not ${JSON.stringify(flags.text('type'))}`);
    const body = await patchOf(context);
    const targets = await targetsOf(session);
    for (const target of targets) {
      const before = await currentObject(session, target);
      if (dryRunOf(flags) === 'client') {
        await printOutcome(context, before, 'patched');
        continue;
      }
      const subresource = flags.text('subresource') || undefined;
      const after = await session.send('PATCH', pathOfTarget(target, subresource), {
        query: writeQuery(flags, 'kubectl-patch'),
        body,
        contentType,
      });
      const unchanged = before.metadata?.resourceVersion === after.metadata?.resourceVersion;
      await printOutcome(context, after, unchanged && subresource === undefined ? 'patched (no change)' : 'patched');
    }
    return 0;
  });
