/** config.openshift.io/v1. Source: openshift/api config/v1 of release 4.10. */
import { clusterTypes } from './config-cluster.ts';
import { type DeclaredField, type DeclaredType, declarePackage } from './declare.ts';

type Fields = Readonly<Record<string, DeclaredField>>;

const kind = (name: string, about: string, spec: Fields, status: Fields = {}): Record<string, DeclaredType> => ({
  [name]: {
    isKind: true,
    about,
    fields: { spec: [`!#${name}Spec`, 'Desired state.'], status: [`#${name}Status`, 'Observed state.'] },
  },
  [`${name}Spec`]: { about: `${name}Spec is the desired state.`, fields: spec },
  [`${name}Status`]: { about: `${name}Status is the observed state.`, fields: status },
});

const SECRET = '#SecretNameReference';
const CONFIG_MAP = '#ConfigMapNameReference';

const DNS_ZONE: DeclaredField = ['#DNSZone', 'A zone of the cluster.'];

export const configPackage = declarePackage('config.v1', {
  ...clusterTypes,
  ...kind('APIServer', 'APIServer configures the API servers.', {
    servingCerts: ['#APIServerServingCerts', 'Certificates for further names.'],
    clientCA: [CONFIG_MAP, 'Authorities of client certificates.'],
    additionalCORSAllowedOrigins: ['[]string', 'Patterns of origins that browsers may send requests from.'],
    encryption: ['#APIServerEncryption', 'Encryption at rest.'],
    tlsSecurityProfile: ['#TLSSecurityProfile', 'TLS versions and ciphers.'],
    audit: ['#Audit', 'Requests that are audited.'],
  }),
  APIServerServingCerts: {
    about: 'APIServerServingCerts holds certificates for names.',
    fields: { namedCertificates: ['[]#APIServerNamedServingCert', 'The certificates.'] },
  },
  APIServerNamedServingCert: {
    about: 'APIServerNamedServingCert is a certificate for names.',
    fields: { names: ['[]string', 'The names.'], servingCertificate: [SECRET, 'A TLS secret in openshift-config.'] },
  },
  APIServerEncryption: {
    about: 'APIServerEncryption is encryption at rest.',
    fields: { type: ['string', 'identity or aescbc.'] },
  },
  Audit: {
    about: 'Audit defines the requests that are audited.',
    fields: {
      profile: ['string', 'Default, WriteRequestBodies, AllRequestBodies or None.'],
      customRules: ['[]#AuditCustomRule', 'Profiles by group.'],
    },
  },
  AuditCustomRule: {
    about: 'AuditCustomRule is a profile for a group.',
    fields: { group: ['!string', 'The group.'], profile: ['!string', 'Audit profile of the group.'] },
  },
  TLSSecurityProfile: {
    about: 'TLSSecurityProfile chooses versions and ciphers.',
    fields: {
      type: ['string', 'Old, Intermediate, Modern or Custom.'],
      old: ['any', 'Empty.'],
      intermediate: ['any', 'Empty.'],
      modern: ['any', 'Empty.'],
      custom: ['#CustomTLSProfile', 'Settings for type Custom.'],
    },
  },
  CustomTLSProfile: {
    about: 'CustomTLSProfile names versions and ciphers.',
    fields: { ciphers: ['[]string', 'The ciphers.'], minTLSVersion: ['string', 'VersionTLS10 to VersionTLS13.'] },
  },
  ...kind(
    'Authentication',
    'Authentication configures how users are authenticated.',
    {
      type: ['string', 'IntegratedOAuth or None.'],
      oauthMetadata: [CONFIG_MAP, 'Metadata of an OAuth server elsewhere.'],
      webhookTokenAuthenticators: ['[]#DeprecatedWebhookTokenAuthenticator', 'Deprecated.'],
      webhookTokenAuthenticator: ['#WebhookTokenAuthenticator', 'A server that reviews tokens.'],
      serviceAccountIssuer: ['string', 'Issuer of bound tokens.'],
    },
    { integratedOAuthMetadata: [CONFIG_MAP, 'Metadata of the OAuth server of the cluster.'] },
  ),
  DeprecatedWebhookTokenAuthenticator: {
    about: 'DeprecatedWebhookTokenAuthenticator is not used.',
    fields: { kubeConfig: [SECRET, 'Kubeconfig with the access to the server.'] },
  },
  WebhookTokenAuthenticator: {
    about: 'WebhookTokenAuthenticator is a server that reviews tokens.',
    fields: { kubeConfig: [SECRET, 'Kubeconfig with the access to the server.'] },
  },
  Build: {
    isKind: true,
    about: 'Build configures builds; this cluster has none.',
    fields: { spec: ['!#BuildSpec', 'Desired state.'] },
  },
  BuildSpec: {
    about: 'BuildSpec is what is wanted.',
    fields: {
      additionalTrustedCA: [CONFIG_MAP, 'Authorities of registries.'],
      buildDefaults: ['any', 'Defaults of builds.'],
      buildOverrides: ['any', 'Overrides of builds.'],
    },
  },
  ...kind(
    'Console',
    'Console configures the web console.',
    { authentication: ['#ConsoleAuthentication', 'Settings for logging out.'] },
    { consoleURL: ['string', 'URL of the console.'] },
  ),
  ConsoleAuthentication: {
    about: 'ConsoleAuthentication configures logging out.',
    fields: { logoutRedirect: ['string', 'URL to which users are redirected after logging out.'] },
  },
  ...kind('DNS', 'DNS names the domain of the cluster.', {
    baseDomain: ['string', 'Domain of the cluster; all names are below it.'],
    publicZone: DNS_ZONE,
    privateZone: DNS_ZONE,
  }),
  DNSZone: {
    about: 'DNSZone identifies a zone.',
    fields: { id: ['string', 'Identifier at the provider.'], tags: ['{}string', 'Tags at the provider.'] },
  },
  ...kind('FeatureGate', 'FeatureGate selects a set of features.', {
    featureSet: ['string', 'Empty, TechPreviewNoUpgrade, LatencySensitive or CustomNoUpgrade.'],
    customNoUpgrade: ['#CustomFeatureGates', 'Settings for CustomNoUpgrade.'],
  }),
  CustomFeatureGates: {
    about: 'CustomFeatureGates names features.',
    fields: { enabled: ['[]string', 'Those that are on.'], disabled: ['[]string', 'Those that are off.'] },
  },
  ...kind(
    'Image',
    'Image configures how images are imported and pulled.',
    {
      allowedRegistriesForImport: ['[]#RegistryLocation', 'Registries that users may import from.'],
      externalRegistryHostnames: ['[]string', 'Names of the registry of the cluster outside.'],
      additionalTrustedCA: [CONFIG_MAP, 'Authorities of registries.'],
      registrySources: ['#RegistrySources', 'Registries that may be used.'],
    },
    {
      internalRegistryHostname: ['string', 'Name of the registry of the cluster.'],
      externalRegistryHostnames: ['[]string', 'External names of the registry.'],
    },
  ),
  RegistryLocation: {
    about: 'RegistryLocation is a registry.',
    fields: {
      domainName: ['!string', 'Name of the registry, with a port.'],
      insecure: ['boolean', 'Access without TLS.'],
    },
  },
  RegistrySources: {
    about: 'RegistrySources describes which registries may be used.',
    fields: {
      insecureRegistries: ['[]string', 'Registries without TLS.'],
      blockedRegistries: ['[]string', 'Those that may not.'],
      allowedRegistries: ['[]string', 'The only ones that may.'],
      containerRuntimeSearchRegistries: ['[]string', 'Registries in which short names are searched.'],
    },
  },
  ...kind(
    'Ingress',
    'Ingress configures routes of the cluster.',
    {
      domain: ['string', 'Domain of routes without a host.'],
      appsDomain: ['string', 'Another one for routes of users.'],
      componentRoutes: ['[]#ComponentRouteSpec', 'Hosts of the routes of components.'],
      requiredHSTSPolicies: ['[]#RequiredHSTSPolicy', 'HSTS that routes must have.'],
    },
    {
      componentRoutes: ['[]#ComponentRouteStatus', 'Routes of components.'],
      defaultPlacement: ['string', 'Workers or ControlPlane.'],
    },
  ),
  ComponentRouteSpec: {
    about: 'ComponentRouteSpec is the host of a component.',
    fields: {
      namespace: ['!string', 'Namespace of the route.'],
      name: ['!string', 'Name of the component route.'],
      hostname: ['!string', 'Host of the component route.'],
      servingCertKeyPairSecret: [SECRET, 'A TLS secret in openshift-config.'],
    },
  },
  ComponentRouteStatus: {
    about: 'ComponentRouteStatus is the route of a component.',
    fields: {
      namespace: ['!string', 'Namespace of the route.'],
      name: ['!string', 'Name of the component route.'],
      defaultHostname: ['!string', 'The host that it has when none is set.'],
      consumingUsers: ['[]string', 'Service accounts that read the certificate.'],
      currentHostnames: ['[]string', 'Hosts of the component route.'],
      conditions: ['[]#meta.Condition', 'Whether it is right.'],
      relatedObjects: ['![]#ObjectReference', 'Objects that matter.'],
    },
  },
  RequiredHSTSPolicy: {
    about: 'RequiredHSTSPolicy is HSTS that routes must have.',
    fields: {
      namespaceSelector: ['#meta.LabelSelector', 'Namespaces of the routes.'],
      domainPatterns: ['![]string', 'Hosts of the routes.'],
      maxAge: ['#MaxAgePolicy', 'Maximum age.'],
      preloadPolicy: ['string', 'RequirePreload, RequireNoPreload or NoOpinion.'],
      includeSubDomainsPolicy: ['string', 'RequireIncludeSubDomains, RequireNoIncludeSubDomains or NoOpinion.'],
    },
  },
  MaxAgePolicy: {
    about: 'MaxAgePolicy bounds the age in seconds.',
    fields: {
      largestMaxAge: ['int32', 'Largest allowed maximum age.'],
      smallestMaxAge: ['int32', 'Smallest allowed maximum age.'],
    },
  },
  ...kind('OAuth', 'OAuth configures how users log in.', {
    identityProviders: ['[]#IdentityProvider', 'Identity providers of the users, in order.'],
    tokenConfig: ['#TokenConfig', 'Lifetime of tokens.'],
    templates: ['#OAuthTemplates', 'Pages of the login.'],
  }),
  IdentityProvider: {
    about: 'IdentityProvider is where users come from.',
    fields: {
      name: ['string', 'Name, part of identities.'],
      mappingMethod: ['string', 'claim, lookup, add or generate.'],
      type: ['string', 'HTPasswd, LDAP, OpenID, RequestHeader …'],
      basicAuth: ['any', 'Settings for type BasicAuth.'],
      github: ['any', 'Settings for type GitHub.'],
      gitlab: ['any', 'Settings for type GitLab.'],
      google: ['any', 'Settings for type Google.'],
      htpasswd: ['#HTPasswdIdentityProvider', 'Settings for type HTPasswd.'],
      keystone: ['any', 'Settings for type Keystone.'],
      ldap: ['#LDAPIdentityProvider', 'Settings for type LDAP.'],
      openID: ['#OpenIDIdentityProvider', 'Settings for type OpenID.'],
      requestHeader: ['#RequestHeaderIdentityProvider', 'Settings for type RequestHeader.'],
    },
  },
  HTPasswdIdentityProvider: {
    about: 'HTPasswdIdentityProvider is a file of users and hashes.',
    fields: { fileData: [SECRET, 'A secret in openshift-config with the key htpasswd.'] },
  },
  LDAPIdentityProvider: {
    about: 'LDAPIdentityProvider is a directory.',
    fields: {
      url: ['!string', 'ldap(s)://host:port/basedn?attribute?scope?filter'],
      bindDN: ['string', 'Name to search with.'],
      bindPassword: [SECRET, 'Secret with the bind password in key bindPassword.'],
      insecure: ['!boolean', 'Access without TLS.'],
      ca: [CONFIG_MAP, 'Authorities, key ca.crt.'],
      attributes: ['!#LDAPAttributeMapping', 'Attributes of identities.'],
    },
  },
  LDAPAttributeMapping: {
    about: 'LDAPAttributeMapping names attributes.',
    fields: {
      id: ['![]string', 'Attributes of the identity.'],
      preferredUsername: ['[]string', 'Attributes of the user name.'],
      name: ['[]string', 'Attributes of the display name.'],
      email: ['[]string', 'Attributes of the mail address.'],
    },
  },
  OpenIDIdentityProvider: {
    about: 'OpenIDIdentityProvider is an OpenID Connect provider.',
    fields: {
      clientID: ['!string', 'The client.'],
      clientSecret: [`!${SECRET}`, 'Secret with the client secret in key clientSecret.'],
      ca: [CONFIG_MAP, 'Authorities, key ca.crt.'],
      extraScopes: ['[]string', 'Scopes beside openid.'],
      extraAuthorizeParameters: ['{}string', 'Further parameters of the request.'],
      issuer: ['!string', 'URL of the issuer.'],
      claims: ['!#OpenIDClaims', 'Claims of identities.'],
    },
  },
  OpenIDClaims: {
    about: 'OpenIDClaims names claims.',
    fields: {
      preferredUsername: ['[]string', 'Claims of the user name.'],
      name: ['[]string', 'Claims of the display name.'],
      email: ['[]string', 'Claims of the mail address.'],
      groups: ['[]string', 'Claims of the groups.'],
    },
  },
  RequestHeaderIdentityProvider: {
    about: 'RequestHeaderIdentityProvider is a proxy that names users in headers.',
    fields: {
      loginURL: ['string', 'URL to which browsers are redirected.'],
      challengeURL: ['string', 'URL to which other clients are redirected.'],
      ca: [`!${CONFIG_MAP}`, 'Authorities of the proxy, key ca.crt.'],
      clientCommonNames: ['[]string', 'Names of the proxy.'],
      headers: ['![]string', 'Headers of the identity.'],
      preferredUsernameHeaders: ['[]string', 'Headers of the user name.'],
      nameHeaders: ['[]string', 'Headers of the display name.'],
      emailHeaders: ['[]string', 'Headers of the mail address.'],
    },
  },
  TokenConfig: {
    about: 'TokenConfig defines the lifetime of tokens.',
    fields: {
      accessTokenMaxAgeSeconds: ['int32', 'Maximum age of a token since its issue, in seconds.'],
      accessTokenInactivityTimeoutSeconds: ['int32', 'Deprecated.'],
      accessTokenInactivityTimeout: ['string', 'Without use, as 10m0s.'],
    },
  },
  OAuthTemplates: {
    about: 'OAuthTemplates are secrets with pages.',
    fields: {
      login: [SECRET, 'Key login.html.'],
      providerSelection: [SECRET, 'Key providers.html.'],
      error: [SECRET, 'Key errors.html.'],
    },
  },
  ...kind(
    'OperatorHub',
    'OperatorHub selects sources of operators.',
    {
      disableAllDefaultSources: ['boolean', 'Without the default sources.'],
      sources: ['[]#HubSource', 'The sources.'],
    },
    { sources: ['[]#HubSourceStatus', 'The sources.'] },
  ),
  HubSource: {
    about: 'HubSource is a source.',
    fields: { name: ['!string', 'Name of the source.'], disabled: ['!boolean', 'Whether it is off.'] },
  },
  HubSourceStatus: {
    about: 'HubSourceStatus is a source.',
    fields: {
      name: ['!string', 'Name of the source.'],
      disabled: ['!boolean', 'Whether it is off.'],
      status: ['string', 'Success or Error.'],
      message: ['string', 'Why.'],
    },
  },
  ...kind('Project', 'Project configures requests of projects.', {
    projectRequestMessage: ['string', 'Message for users that are not allowed to request projects.'],
    projectRequestTemplate: ['#TemplateReference', 'Template in openshift-config that projects are made by.'],
  }),
  TemplateReference: {
    about: 'TemplateReference names a template.',
    fields: { name: ['string', 'Name of the template.'] },
  },
  ...kind(
    'Proxy',
    'Proxy configures the way out of the cluster.',
    {
      httpProxy: ['string', 'Proxy for HTTP.'],
      httpsProxy: ['string', 'Proxy for HTTPS.'],
      noProxy: ['string', 'Hosts and ranges without it, separated by commas.'],
      readinessEndpoints: ['[]string', 'URLs that show whether it works.'],
      trustedCA: [CONFIG_MAP, 'Authorities, key ca-bundle.crt.'],
    },
    {
      httpProxy: ['string', 'Proxy for HTTP.'],
      httpsProxy: ['string', 'Proxy for HTTPS.'],
      noProxy: ['string', 'Hosts and ranges without it.'],
    },
  ),
  ...kind('Scheduler', 'Scheduler configures scheduling.', {
    policy: [CONFIG_MAP, 'Deprecated.'],
    profile: ['string', 'LowNodeUtilization, HighNodeUtilization or NoScoring.'],
    defaultNodeSelector: ['string', 'Node selector of pods without one.'],
    mastersSchedulable: ['boolean', 'Whether pods may run on masters.'],
  }),
  SecretNameReference: {
    about: 'SecretNameReference names a secret.',
    fields: { name: ['!string', 'Name of the secret.'] },
  },
  ConfigMapNameReference: {
    about: 'ConfigMapNameReference names a config map.',
    fields: { name: ['!string', 'Name of the config map.'] },
  },
});
