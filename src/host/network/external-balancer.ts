/** Generates configurations of HAProxy and keepalived for a load balancer in front of the masters. */
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { CodedError } from '../../base/errors.ts';
import { isRemote, parseTarget, targetOfUrl, targetText } from '../../network/balancer/core/index.ts';
import { masterFiles, nodeFiles } from '../../pki/index.ts';
import { loadSettings, type Settings, type SettingsFlags } from '../config/settings.ts';

export interface ExternalBalancerOptions extends SettingsFlags {
  /** Masters as `host:port` or URLs. If empty, the masters that this host has discovered. */
  readonly masters: readonly string[];
}

/** Configuration of HAProxy. Throws CodedErrors that name the setting or the argument. */
export async function haproxyConfig(options: ExternalBalancerOptions & { readonly bind: string }): Promise<string> {
  const settings = await loadSettings(options);
  const bind = /^\*:\d+$/.test(options.bind) || parseTarget(options.bind) !== undefined;
  if (!bind) throw new CodedError('bad-config', `--bind ${options.bind}: not an address with a port; give *:6443`);
  const servers = (await mastersOf(settings, options.masters)).map(
    (target, at) => `    server master-${at + 1} ${target}`,
  );
  const caFile = settings.roles.has('master') ? masterFiles(settings.root).caBundle : nodeFiles(settings.root).clientCa;
  return `# HAProxy in front of the API servers of this cluster. Copy the CA to the host of HAProxy: ${caFile}
global
    maxconn 20000

defaults
    mode tcp
    timeout connect 2s
    timeout client 1h
    timeout server 1h
    timeout check 2s
    option clitcpka
    option srvtcpka
    option redispatch
    retries 3

frontend kubernetes-api
    bind ${options.bind}
    default_backend masters

backend masters
    balance leastconn
    option httpchk
    http-check send meth GET uri /readyz ver HTTP/1.1 hdr Host kubernetes
    http-check expect status 200
    default-server check check-ssl verify required ca-file ${caFile} inter 1s fall 2 rise 1 on-marked-down shutdown-sessions
${servers.join('\n')}
`;
}

/** Configuration of keepalived. Throws CodedErrors that name the setting. */
export async function keepalivedConfig(
  options: SettingsFlags & { readonly address: string | undefined; readonly link: string | undefined },
): Promise<string> {
  const settings = await loadSettings(options);
  const address = options.address ?? settings.vip?.address;
  const link = options.link ?? settings.vip?.link;
  if (address === undefined)
    throw new CodedError(
      'bad-config',
      'keepalived: no shared address; give --address, or set vip.address in bootstrap.yaml',
    );
  if (link === undefined)
    throw new CodedError('bad-config', 'keepalived: no link; give --interface, or set vip.interface in bootstrap.yaml');
  if (isIP(address) === 0) throw new CodedError('bad-config', `--address ${address}: not an address`);
  if (!/^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,14}$/.test(link))
    throw new CodedError('bad-config', `--interface ${link}: not a link`);
  const ca = masterFiles(settings.root).caBundle;
  return `# keepalived on each master, beside HAProxy or alone: the shared address follows a ready API server.
# Do not set vip in bootstrap.yaml as well: only one of the two may hold the address.
global_defs {
    script_user root
    enable_script_security
}

vrrp_script api_ready {
    script "/usr/bin/curl --silent --fail --max-time 2 --cacert ${ca} https://127.0.0.1:${settings.ports.api}/readyz"
    interval 1
    fall 2
    rise 2
}

vrrp_instance kubernetes_api {
    state BACKUP
    nopreempt
    interface ${link}
    virtual_router_id 51
    priority 100
    advert_int 1
    virtual_ipaddress {
        ${address}/${address.includes(':') ? 128 : 32}
    }
    track_script {
        api_ready
    }
}
`;
}

async function mastersOf(settings: Settings, given: readonly string[]): Promise<readonly string[]> {
  const fromFlags = given.map((text) => {
    const target = targetOfUrl(text) ?? (parseTarget(text) === undefined ? undefined : text);
    if (target === undefined)
      throw new CodedError('bad-config', `--masters ${text}: not a server; give addresses such as 10.0.0.5:8443`);
    return target;
  });
  if (fromFlags.length > 0) return fromFlags;
  const { masters, join, paths, roles, nodeIp, ports } = settings;
  const saved = (await readFile(paths.masters, 'utf8').catch(() => '')).split('\n').filter(isRemote);
  const own = roles.has('master') ? [targetText({ host: nodeIp, port: ports.api })] : [];
  const configured = [...masters, ...(join === undefined ? [] : [join.server])].flatMap(
    (url) => targetOfUrl(url) ?? [],
  );
  return [...new Set([...own, ...saved, ...configured])];
}
