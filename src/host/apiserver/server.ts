/** The API server on any etcd v3 store, configured by this host's master-config.yaml or by kube-apiserver's flags. */

import { hostname, networkInterfaces } from 'node:os';
import { ApiUsageProblem, ApiValues } from '../../apiserver/config/index.ts';
import { createApiServer } from '../../apiserver/index.ts';
import { createHttp } from '../../apiserver/io/http/index.ts';
import { CodedError } from '../../base/errors.ts';
import { omitUndefined } from '../../base/json/omit-fields.ts';
import type { Log } from '../../base/log.ts';
import { processFacts } from '../../kubelet/io/host-facts/index.ts';
import { openshiftOf } from '../../openshift/oauth/config/login-config.ts';
import { parseSigningRequest } from '../../pki/index.ts';
import { sha256Hex } from '../../wire/digest.ts';
import { settingsFromEnvironment } from '../../wire/outbound/proxy-choice.ts';
import { type MasterConfig, parseBindAddress, readMasterConfig, resolveRelativeTo } from '../config/master-config.ts';
import { sharedOutbound, shownProxy } from '../config/outbound.ts';
import type { Component, ComponentOptions } from '../controllers/server.ts';
import { consoleFiles, loadJsonAsset } from '../process/assets.ts';
import { systemClock as clock, systemRandom as random } from '../process/process.ts';
import { openAudit } from './audit.ts';
import { followIdentities } from './authentication.ts';
import { followAuthorizers } from './authorization.ts';
import { followCertificates } from './certificates.ts';
import { type ApiOptions, apiConfigOf } from './config.ts';
import { egressOf } from './egress.ts';
import { openEncryption } from './encryption-file.ts';
import { imageRegistriesOf } from './image-registries.ts';
import { createLoginFor } from './login.ts';
import { releaseSource } from './releases.ts';
import { openStore } from './store.ts';

/** Starts the API server with this host's master-config.yaml. Throws CodedErrors that name the file and the field. */
export async function startApi({ configFile, log }: ComponentOptions): Promise<Component> {
  const config = await readMasterConfig(configFile);
  try {
    return await startApiWith(
      valuesOf(config, configFile),
      {
        referredToBy: configFile,
        ownHost: true,
        openshift: layerOf(config),
        releases: releaseSource(configFile),
        console: config.console?.enabled ?? true,
        // With a store on this host only, this API server is the only writer until another API server announces itself.
        soleWriter: config.etcdClientInfo.urls.every((url) => new URL(url).hostname === '127.0.0.1'),
      },
      log,
    );
  } catch (error) {
    if (error instanceof ApiUsageProblem) throw new CodedError('bad-config', error.message, { cause: error });
    throw error;
  }
}

function layerOf({ openshift, networkConfig, masterPublicURL }: MasterConfig): NonNullable<ApiOptions['openshift']> {
  const clusterNetworks = (networkConfig?.clusterNetworks ?? []).map(({ cidr, hostSubnetLength }) => ({
    cidr,
    hostPrefix: (cidr.includes(':') ? 128 : 32) - hostSubnetLength,
  }));
  const publicUrl = masterPublicURL === undefined ? {} : { publicUrl: masterPublicURL };
  return { ...openshiftOf(openshift), clusterNetworks, ...publicUrl };
}

/** Flags from this host's master-config.yaml. Throws CodedErrors that name the file and the field. */
export async function masterValues(configFile: string): Promise<ApiValues> {
  return valuesOf(await readMasterConfig(configFile), configFile);
}

/** Converts the fields of master-config.yaml to kube-apiserver's flags. `apiServerArguments` take precedence. */
function valuesOf(config: MasterConfig, configFile: string): ApiValues {
  const values = new ApiValues((path) => resolveRelativeTo(configFile, path));
  const give = (name: string, field: string, ...texts: (string | undefined)[]): void => {
    const given = texts.filter((each) => each !== undefined);
    if (given.length > 0) values.give(name, given, `${configFile}: ${field}`);
  };
  const { servingInfo, kubeletClientInfo, serviceAccountConfig, etcdClientInfo } = config;
  const bind = parseBindAddress(servingInfo.bindAddress);
  const master = config.kubernetesMasterConfig;
  const requestHeader = config.authConfig?.requestHeader;
  give('bind-address', 'servingInfo.bindAddress', bind?.address);
  give('secure-port', 'servingInfo.bindAddress', String(bind?.port));
  give('tls-cert-file', 'servingInfo.certFile', servingInfo.certFile);
  give('tls-private-key-file', 'servingInfo.keyFile', servingInfo.keyFile);
  give('client-ca-file', 'servingInfo.clientCA', servingInfo.clientCA);
  give('etcd-servers', 'etcdClientInfo.urls', ...etcdClientInfo.urls);
  give('etcd-cafile', 'etcdClientInfo.ca', etcdClientInfo.ca);
  give('etcd-certfile', 'etcdClientInfo.certFile', etcdClientInfo.certFile);
  give('etcd-keyfile', 'etcdClientInfo.keyFile', etcdClientInfo.keyFile);
  give('kubelet-certificate-authority', 'kubeletClientInfo.ca', kubeletClientInfo.ca);
  give('kubelet-client-certificate', 'kubeletClientInfo.certFile', kubeletClientInfo.certFile);
  give('kubelet-client-key', 'kubeletClientInfo.keyFile', kubeletClientInfo.keyFile);
  give('service-account-signing-key-file', 'serviceAccountConfig.privateKeyFile', serviceAccountConfig.privateKeyFile);
  give('service-account-key-file', 'serviceAccountConfig.publicKeyFiles', ...serviceAccountConfig.publicKeyFiles);
  give('requestheader-client-ca-file', 'authConfig.requestHeader.clientCA', requestHeader?.clientCA);
  give(
    'requestheader-allowed-names',
    'authConfig.requestHeader.clientCommonNames',
    ...(requestHeader?.clientCommonNames ?? []),
  );
  if (requestHeader !== undefined) give('requestheader-uid-headers', 'authConfig.requestHeader', 'X-Remote-Uid');
  const proxyClient = config.aggregatorConfig?.proxyClientInfo;
  give('proxy-client-cert-file', 'aggregatorConfig.proxyClientInfo.certFile', proxyClient?.certFile);
  give('proxy-client-key-file', 'aggregatorConfig.proxyClientInfo.keyFile', proxyClient?.keyFile);
  const publicUrl = config.masterPublicURL ?? `https://${servingInfo.bindAddress}`;
  give('advertise-address', 'kubernetesMasterConfig.masterIP', master?.masterIP ?? new URL(publicUrl).hostname);
  give('service-cluster-ip-range', 'kubernetesMasterConfig.servicesSubnet', master?.servicesSubnet ?? '172.30.0.0/16');
  give('service-node-port-range', 'kubernetesMasterConfig.servicesNodePortRange', master?.servicesNodePortRange);
  const own = master?.apiServerArguments ?? new Map<string, string[]>();
  const defaults = {
    ...(own.has('authorization-config') ? {} : { 'authorization-mode': ['Node', 'RBAC'] }),
    'service-account-issuer': ['https://kubernetes.default.svc'],
  };
  for (const [name, texts] of Object.entries(defaults)) if (!own.has(name)) give(name, name, ...texts);
  // API servers of hyperedge hosts always reload the encryption file.
  if (!own.has('encryption-provider-config-automatic-reload'))
    give('encryption-provider-config-automatic-reload', '', 'true');
  // Bootstrapping nodes authenticate with a token.
  if (!own.has('enable-bootstrap-token-auth')) give('enable-bootstrap-token-auth', '', 'true');
  for (const [name, texts] of own) give(name, `kubernetesMasterConfig.apiServerArguments.${name}`, ...texts);
  return values;
}

/**
 * Starts the API server with kube-apiserver's flags. Throws CodedErrors and ApiUsageProblems that name the flag, the
 * field or the file.
 */
export async function startApiWith(values: ApiValues, options: ApiOptions, log: Log): Promise<Component> {
  const { config, warnings } = await apiConfigOf(values, options);
  for (const warning of warnings) log.warn(warning);
  const encryptionFile = values.file('encryption-provider-config');
  const encryption =
    encryptionFile === undefined
      ? undefined
      : await openEncryption(encryptionFile, {
          referredToBy: options.referredToBy,
          follow: values.boolean('encryption-provider-config-automatic-reload'),
          log: log.named('encryption'),
          onOpenSecret: options.onOpenSecret,
        });
  const authorizers = await followAuthorizers(
    values,
    options.referredToBy,
    log.named('authorization'),
    options.onOpenSecret,
  );
  const identities = await followIdentities(
    values,
    config.authorizers ?? [],
    { referredToBy: options.referredToBy, ownHost: options.ownHost },
    log.named('authentication'),
  );
  const certificates = await followCertificates(values, config, options, log.named('certificates'));
  const store = await openStore(values, options.referredToBy, log, options.onOpenSecret);
  const outbound = options.ownHost ? await sharedOutbound(options.referredToBy) : settingsFromEnvironment(process.env);
  const http = createHttp(await egressOf(values, options.referredToBy, options.onOpenSecret), outbound);
  const audit = await openAudit(values, {
    referredToBy: options.referredToBy,
    http,
    log: log.named('audit'),
    onOpenSecret: options.onOpenSecret,
  });
  const server = createApiServer({
    store,
    http,
    log,
    clock,
    random,
    ownAddresses: () =>
      Object.values(networkInterfaces()).flatMap((each) => (each ?? []).map(({ address }) => address)),
    readSigningRequest: parseSigningRequest,
    processFacts,
    loadSchemaDescriptions: () => loadJsonAsset('descriptions.json'),
    ...omitUndefined({ encryption, authorizers, identities, audit, releases: options.releases }),
    certificates,
    ...(options.console === undefined ? {} : { loadConsole: options.console ? consoleFiles : () => undefined }),
    login: await createLoginFor(config, options.openshift, outbound, {
      log: log.named('oauth'),
      console: options.console === true,
    }),
    ...(options.ownHost ? { imageRegistries: imageRegistriesOf(options.referredToBy) } : {}),
    config: {
      ...config,
      ...(config.openshift === undefined ? {} : { openshift: { ...config.openshift, ...shownProxy(outbound) } }),
      identity: identityOf(config.advertiseAddress),
    },
  });
  const { port } = await server.start();
  log.info('serving', { address: config.bindAddress, port });
  const { shutdownDelaySeconds = 0, requestTimeoutSeconds = 60 } = config;
  return {
    patienceMs: (shutdownDelaySeconds + requestTimeoutSeconds) * 1000,
    stop: async () => {
      await server.stop();
      await store.close();
      encryption?.stop();
      authorizers?.stop();
      identities?.stop();
      certificates.stop();
    },
  };
}

/** The name contains a digest of the advertised address, which differs between the API servers of a cluster. */
function identityOf(advertiseAddress: string): { readonly name: string; readonly hostname: string } {
  const digest = sha256Hex(advertiseAddress).slice(0, 26);
  return { name: `apiserver-${digest}`, hostname: hostname() };
}
