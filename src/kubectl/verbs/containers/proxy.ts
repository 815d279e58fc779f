/** `proxy`: serves the API on a local port with the credentials of the client. Source: k8s.io/kubectl/pkg/cmd/proxy. */
import { messageOf } from '../../../base/errors.ts';
import { compileRegexp, type Regexp } from '../../../base/regexp/index.ts';
import { ClientError } from '../../core/errors.ts';
import type { VerbContext } from '../../port.ts';
import { withSession } from '../../run.ts';

export const run = (context: VerbContext): Promise<number> =>
  withSession(context, async (session) => {
    const { flags, io, system, signal } = context;
    if (flags.has('unix-socket') && flags.has('port'))
      throw new ClientError('cannot set --unix-socket and --port at the same time');
    const unixSocket = flags.text('unix-socket');
    const address = flags.text('address');
    const www = flags.text('www');
    if (www !== '' && (await system.filesIn(www)) === undefined)
      throw new ClientError(`--www: ${www} is not a directory; name a directory with files`);
    const listener = await session.connection.serve({
      address,
      port: flags.int('port'),
      ...(unixSocket === '' ? {} : { unixSocket }),
      apiPrefix: slashed(flags.text('api-prefix')),
      appendServerPath: flags.bool('append-server-path'),
      ...(www === ''
        ? {}
        : { www: { directory: system.absolutePath(www), prefix: slashed(flags.text('www-prefix')) } }),
      accepts: filterOf(context),
    });
    try {
      const shown = address.includes(':') ? `[${address}]` : address;
      io.out(`Starting to serve on ${unixSocket === '' ? `${shown}:${listener.port}` : unixSocket}\n`);
      if (!signal.aborted)
        await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
      return 0;
    } finally {
      listener.close();
    }
  });

const slashed = (prefix: string): string => `/${prefix}/`.replaceAll(/\/+/g, '/');

/** Returns a function that reports whether the flags' patterns, in Go's syntax, permit a request. */
function filterOf({ flags, io }: VerbContext): (method: string, host: string, path: string) => boolean {
  if (flags.bool('disable-filter')) {
    if (flags.text('unix-socket') === '')
      io.err('Request filter disabled, your proxy is vulnerable to XSRF attacks, please be cautious\n');
    return () => true;
  }
  const patterns = (flag: string): readonly Regexp[] =>
    flags
      .text(flag)
      .split(',')
      .filter((text) => text !== '')
      .map((text) => {
        try {
          return compileRegexp(text);
        } catch (error) {
          throw new ClientError(`--${flag}: ${messageOf(error)}`);
        }
      });
  const [hosts, accepted, rejected, methods] = ['accept-hosts', 'accept-paths', 'reject-paths', 'reject-methods'].map(
    patterns,
  );
  const some = (list: readonly Regexp[] | undefined, text: string): boolean =>
    list?.some((each) => each.test(text)) === true;
  return (method, host, path) => {
    const name = host.replace(/:\d+$/, '');
    return some(hosts, name) && some(accepted, path) && !some(rejected, path) && !some(methods, method);
  };
}
