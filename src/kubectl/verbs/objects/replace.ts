/** `replace`: replaces whole objects by PUT or, with `--force`, by delete and create. */
import { ClientError } from '../../core/errors.ts';
import { pathOf } from '../../core/resources.ts';
import { requiredManifests } from '../../manifests.ts';
import type { VerbContext } from '../../port.ts';
import { dryRunOf, printOutcome, validationOf, writeQuery } from '../../printing.ts';
import { errorLine, withSession } from '../../run.ts';
import { deletedLine, deleteTargets } from './delete.ts';

export const run = (context: VerbContext): Promise<number> =>
  withSession(context, async (session) => {
    const { flags, io } = context;
    if (flags.bool('force') && dryRunOf(flags) !== 'none')
      throw new ClientError('--dry-run can not be used when --force is set');
    const subresource = flags.text('subresource') || undefined;
    if (flags.bool('force') && subresource !== undefined)
      throw new ClientError('--subresource can not be used when --force is set');
    let failed = false;
    const query = { ...writeQuery(flags, 'kubectl-replace'), fieldValidation: validationOf(flags.text('validate')) };
    for (const { object, source } of await requiredManifests(context, 'replace')) {
      try {
        const { resource, namespace } = await session.place(object);
        const name = object.metadata?.name ?? '';
        if (flags.bool('force')) {
          await deleteTargets(session, [{ resource, namespace, name }], {
            ignoreMissing: true,
            wait: true,
            print: (target) => io.out(deletedLine(target, 'deleted', flags)),
          });
          const created = await session.send('POST', pathOf(resource, namespace), { query, body: object });
          await printOutcome(context, created, 'replaced');
          continue;
        }
        if (dryRunOf(flags) === 'client') {
          await printOutcome(context, object, 'replaced');
          continue;
        }
        await printOutcome(
          context,
          await session.send('PUT', pathOf(resource, namespace, name, subresource), { query, body: object }),
          'replaced',
        );
      } catch (error) {
        failed = true;
        io.err(`${errorLine(error, `error when replacing "${source}"`)}\n`);
      }
    }
    return failed ? 1 : 0;
  });
