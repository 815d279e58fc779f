/** `hyperedge api`: the API server on an etcd, ours or any other. */
import { CodedError } from '../base/errors.ts';
import { createApiServer } from '../components/apiserver/index.ts';
import { createEtcdStore } from '../io/grpc/index.ts';
import { createHttp } from '../io/http/index.ts';
import { loadJsonAsset } from './assets.ts';
import { parseBindAddress, readMasterConfig, resolveBeside } from './config/master-config.ts';
import type { Component, ComponentOptions } from './controllers.ts';
import { readReferenced, readSecret } from './files.ts';
import { systemClock as clock, systemRandom as random } from './process.ts';

/** Throws CodedErrors that name file and field. */
export async function startApi({ configFile, log }: ComponentOptions): Promise<Component> {
  const config = await readMasterConfig(configFile);
  const text = (path: string): Promise<string> => readReferenced(resolveBeside(configFile, path), configFile);
  const secret = (path: string): Promise<string> => readSecret(resolveBeside(configFile, path), configFile);
  const bind = parseBindAddress(config.servingInfo.bindAddress);
  if (bind === undefined) throw new CodedError('bad-config', `${configFile}: servingInfo.bindAddress`);
  const { servingInfo, kubeletClientInfo, serviceAccountConfig, etcdClientInfo } = config;
  const master = config.kubernetesMasterConfig;
  const requestHeader = config.authConfig?.requestHeader;
  const store = createEtcdStore({
    endpoints: etcdClientInfo.urls,
    ...(etcdClientInfo.ca === undefined ? {} : { ca: await text(etcdClientInfo.ca) }),
    ...(etcdClientInfo.certFile === undefined ? {} : { cert: await text(etcdClientInfo.certFile) }),
    ...(etcdClientInfo.keyFile === undefined ? {} : { key: await secret(etcdClientInfo.keyFile) }),
    log: log.named('store'),
    clock,
  });
  const publicUrl = config.masterPublicURL ?? `https://${config.servingInfo.bindAddress}`;
  const nodePorts = master?.servicesNodePortRange?.split('-').map(Number);
  const server = createApiServer({
    store,
    http: createHttp(),
    log,
    clock,
    random,
    loadSchemaDescriptions: () => loadJsonAsset('descriptions.json'),
    config: {
      bindAddress: bind.address,
      port: bind.port,
      advertiseAddress: master?.masterIP ?? new URL(publicUrl).hostname,
      serving: { certificate: await text(servingInfo.certFile), key: await secret(servingInfo.keyFile) },
      clientCa: await text(servingInfo.clientCA),
      ...(requestHeader === undefined
        ? {}
        : {
            requestHeader: {
              ca: await text(requestHeader.clientCA),
              allowedNames: requestHeader.clientCommonNames,
            },
          }),
      serviceAccounts: {
        signingKey: await secret(serviceAccountConfig.privateKeyFile),
        publicKeys: await Promise.all(serviceAccountConfig.publicKeyFiles.map(text)),
        issuer: 'https://kubernetes.default.svc',
      },
      kubelet: {
        certificate: await text(kubeletClientInfo.certFile),
        key: await secret(kubeletClientInfo.keyFile),
        ca: await text(kubeletClientInfo.ca),
      },
      ...(master?.servicesSubnet === undefined ? {} : { serviceCidr: master.servicesSubnet }),
      ...(nodePorts === undefined ? {} : { nodePortRange: [nodePorts[0] ?? 0, nodePorts[1] ?? 0] as const }),
      clusterCa: await text(serviceAccountConfig.masterCA),
      // One host, one API server on its own store; a store that others may write to is asked.
      soleWriter: etcdClientInfo.urls.every((url) => new URL(url).hostname === '127.0.0.1'),
    },
  });
  const { port } = await server.start();
  log.info('serving', { address: bind.address, port });
  return {
    stop: async () => {
      await server.stop();
      await store.close();
    },
  };
}
