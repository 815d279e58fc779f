/** `create`: creates objects from files, or one object from flags. Source: k8s.io/kubectl/pkg/cmd/create. */
import { isApiError } from '../../../api/meta/status.ts';
import { ClientError } from '../../core/errors.ts';
import type { AnyObject } from '../../core/objects.ts';
import { pathOf } from '../../core/resources.ts';
import { requiredManifests } from '../../manifests.ts';
import type { RunVerb, VerbContext } from '../../port.ts';
import { dryRunOf, objectPrinter, printOutcome, validationOf, writeQuery } from '../../printing.ts';
import { errorLine, withSession } from '../../run.ts';
import type { Session } from '../../session.ts';
import { GENERATORS } from './generators.ts';

export const run = (context: VerbContext): Promise<number> =>
  withSession(context, async (session) => {
    const { flags, args, io } = context;
    const [extra] = args;
    if (extra !== undefined)
      throw new ClientError(
        `unknown command ${JSON.stringify(extra)} for "create"\nSee 'kubectl create -h' for help and examples`,
      );
    if (flags.has('raw')) return createRaw(session);
    let failed = false;
    for (const { object, source } of await requiredManifests(context, 'create')) {
      try {
        await createObject(session, object, validationOf(flags.text('validate')));
      } catch (error) {
        failed = true;
        io.err(`${errorLine(error, isApiError(error, 'Invalid') ? '' : `error when creating "${source}"`)}\n`);
      }
    }
    return failed ? 1 : 0;
  });

/**
 * Sends one file unchanged to the path in `--raw`, and prints the response. The file may be empty. Source: RawPost in
 * k8s.io/kubectl/pkg/rawhttp.
 */
async function createRaw(session: Session): Promise<number> {
  const { flags, io, system } = session.context;
  const files = flags.list('filename');
  const [file] = files;
  if (file === undefined && !flags.has('kustomize')) throw new ClientError('must specify one of -f and -k');
  if (file === undefined || files.length > 1) throw new ClientError('--raw can only use a single local file or stdin');
  if (/^https?:\/\//.test(file)) throw new ClientError('--raw cannot read from a url');
  const text = file === '-' ? await io.readAll() : Buffer.from(await system.readFile(file)).toString('utf8');
  for await (const chunk of await session.postText(flags.text('raw'), text)) {
    io.out(chunk);
    await io.drained();
  }
  return 0;
}

/** Creates the object, or only prints it with `--dry-run=client`. */
export async function createObject(
  session: Session,
  object: AnyObject,
  fieldValidation: string | undefined,
  outcome = 'created',
): Promise<void> {
  const { context } = session;
  const { resource, namespace } = await session.place(object);
  const placed: AnyObject =
    namespace === undefined ? object : { ...object, metadata: { ...object.metadata, namespace } };
  if (dryRunOf(context.flags) === 'client') {
    // As in kubectl, the namespace is printed only if the flag or the manifest specified it.
    const shown = session.connection.namespaceGiven || object.metadata?.namespace !== undefined ? placed : object;
    return printOutcome(context, shown, outcome);
  }
  const query = { ...writeQuery(context.flags, 'kubectl-create'), fieldValidation };
  await printOutcome(
    context,
    await session.send('POST', pathOf(resource, namespace), { query, body: placed }),
    outcome,
  );
}

/** Prefixes of server errors by kind, as kubectl prints them. */
const FAILURES: Readonly<Record<string, string>> = {
  configmap: 'configmap:',
  'secret generic': 'secret',
  'secret tls': 'secret',
  'secret docker-registry': 'secret',
  deployment: 'deployment:',
  job: 'job:',
  cronjob: 'cronjob:',
  rolebinding: 'rolebinding:',
  clusterrolebinding: 'clusterrolebinding:',
  serviceaccount: 'serviceaccount:',
  'service clusterip': 'ClusterIP service:',
  'service nodeport': 'NodePort service:',
  'service loadbalancer': 'LoadBalancer service:',
  'service externalname': 'ExternalName service:',
  quota: 'quota:',
  poddisruptionbudget: 'poddisruptionbudgets:',
  priorityclass: 'priorityclass:',
  ingress: 'ingress:',
};

/** Code of `create KIND NAME …`, which makes the object from flags. */
export const runGenerator =
  (kind: string): RunVerb =>
  (context) =>
    withSession(context, async (session) => {
      const generator = GENERATORS[kind];
      if (generator === undefined) throw new ClientError(`unknown kind ${kind}`);
      const object = await generator(context, session);
      if (kind === 'token') {
        const { name = '', namespace = session.namespace } = object.metadata ?? {};
        const accounts = await session.resource('serviceaccounts');
        const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: object['spec'] };
        const path = pathOf(accounts, namespace, name, 'token');
        const answer = await session
          .send<AnyObject & { status?: { token?: string } }>('POST', path, { body })
          .catch((error: unknown) => {
            throw isApiError(error) ? new ClientError(`failed to create token: ${error.message}`) : error;
          });
        const printer = await objectPrinter(context);
        context.io.out(printer === undefined ? `${answer.status?.token ?? ''}\n` : printer(answer));
        return 0;
      }
      if (context.flags.bool('append-hash')) {
        const { nameHash } = await import('../../kustomize/name-hash.ts');
        object.metadata = { ...object.metadata, name: `${object.metadata?.name ?? ''}-${nameHash(object)}` };
      }
      try {
        await createObject(session, object, validationOf(context.flags.text('validate')));
      } catch (error) {
        const what = FAILURES[kind];
        if (what === undefined || !isApiError(error)) throw error;
        throw new ClientError(`failed to create ${what} ${error.message}`);
      }
      return 0;
    });
