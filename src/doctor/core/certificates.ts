/** Checks of certificates and kubeconfigs. */
import { dateText } from '../../base/time/timestamps.ts';
import type { Finding, HostFacts } from '../port.ts';
import { check, error, orOk, restartCommand, shell, warning } from './check.ts';

const DAY_MS = 24 * 3_600_000;
const SOON_MS = 14 * DAY_MS;
const AHEAD_MS = 60_000;

const NODE_CLIENT = /\/kubelet-client-current\.pem$/;

/**
 * Finding for a host whose name was changed. A master issues the certificate again when it starts. The API server does
 * not sign a certificate of another name for a node, so a joined node must keep its name or join again.
 */
function renamed(file: string, former: string, host: HostFacts): Finding {
  const evidence = `${file} is of the node ${former}, but this host has the name ${host.nodeName}`;
  if (host.roles.includes('master')) return error(evidence, restartCommand(host));
  const restore = `hostnamectl set-hostname ${shell(former)} && ${restartCommand(host)}`;
  return error(`${evidence}; the API server rejects its Node`, `${restore}    # or join again with a new token`);
}

const validity = check({
  id: 'certificates',
  title: 'certificates are valid',
  group: 'certificates',
  explanation:
    'No certificate has expired, is not valid yet, expires soon, or is of a former node name. The host renews its own.',
  needs: ['certificates', 'clock', 'host'],
  run: ({ certificates, clock: { nowMs }, host }) => {
    const findings = certificates.flatMap(({ file, subject, notAfterMs, notBeforeMs, problem }): Finding[] => {
      const renew = `${restartCommand(host)}    # renews its own certificates; replace ${shell(file)} if it is yours`;
      if (problem !== undefined)
        return [error(`${file}: ${problem}`, `mv ${shell(file)} ${shell(`${file}.bad`)} && ${restartCommand(host)}`)];
      if (notAfterMs <= nowMs) return [error(`${file} expired on ${dateText(notAfterMs)}`, renew)];
      if (notBeforeMs > nowMs + AHEAD_MS)
        return [
          error(`${file} is valid from ${dateText(notBeforeMs)} on; the clock is wrong`, 'timedatectl set-ntp true'),
        ];
      const former = NODE_CLIENT.test(file) ? /(?:^|\n)CN=system:node:([^\n]+)/.exec(subject)?.[1] : undefined;
      if (former !== undefined && former !== host.nodeName) return [renamed(file, former, host)];
      return notAfterMs - nowMs < SOON_MS ? [warning(`${file} expires on ${dateText(notAfterMs)}`, renew)] : [];
    });
    const first = Math.min(...certificates.map(({ notAfterMs }) => notAfterMs));
    const evidence = `${certificates.length} certificates`;
    return orOk(findings, Number.isFinite(first) ? `${evidence}, the first expires on ${dateText(first)}` : evidence);
  },
});

const chain = check({
  id: 'certificate-chain',
  title: 'certificates are issued by the trusted authorities',
  group: 'certificates',
  explanation: 'The signature of each certificate is of an authority in the bundle that its peers trust.',
  needs: ['certificates', 'host'],
  run: ({ certificates, host }) =>
    orOk(
      certificates.flatMap(({ file, chainProblem }) =>
        chainProblem === undefined
          ? []
          : [
              error(
                `${file}: ${chainProblem}`,
                `mv ${shell(file)} ${shell(`${file}.bad`)} && ${restartCommand(host)}    # issues it again`,
              ),
            ],
      ),
      `${certificates.length} certificates`,
    ),
});

const CREDENTIALS = /certificate|expired|Unauthorized|401/i;

const kubeconfigs = check({
  id: 'kubeconfig',
  title: 'kubeconfigs reach their server',
  group: 'certificates',
  explanation: 'The server of each kubeconfig answers and accepts the credentials in it.',
  needs: ['kubeconfigs', 'host'],
  run: ({ kubeconfigs: files, host }) =>
    orOk(
      files.flatMap(({ file, server, expected, problem }) => {
        if (problem === undefined) return [];
        const evidence = `${file}: ${server}: ${problem}`;
        if (CREDENTIALS.test(problem))
          return [
            error(
              evidence,
              `mv ${shell(file)} ${shell(`${file}.bad`)} && ${restartCommand(host)}    # writes it again`,
            ),
          ];
        if (server === '' || server === expected) return [error(evidence, restartCommand(host))];
        return [error(evidence, `sed -i 's#\\(server: *\\)[^ ]*#\\1${expected}#' ${shell(file)}`)];
      }),
      files.map(({ server }) => server).join(' '),
    ),
});

export const certificateChecks = [validity, chain, kubeconfigs];
