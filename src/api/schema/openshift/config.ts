/** config.openshift.io/v1. Source: openshift/api config/v1 of release 4.10. */
import { clusterTypes } from './config-cluster.ts';
import { type DeclaredField, type DeclaredType, declarePackage } from './declare.ts';

type Fields = Readonly<Record<string, DeclaredField>>;

const kind = (name: string, about: string, spec: Fields, status: Fields = {}): Record<string, DeclaredType> => ({
  [name]: {
    isKind: true,
    about,
    fields: { spec: [`!#${name}Spec`, 'What is wanted.'], status: [`#${name}Status`, 'What is observed.'] },
  },
  [`${name}Spec`]: { about: `${name}Spec is what is wanted.`, fields: spec },
  [`${name}Status`]: { about: `${name}Status is what is observed.`, fields: status },
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
    audit: ['#Audit', 'What is audited.'],
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
    about: 'Audit says what is audited.',
    fields: {
      profile: ['string', 'Default, WriteRequestBodies, AllRequestBodies or None.'],
      customRules: ['[]#AuditCustomRule', 'Profiles by group.'],
    },
  },
  AuditCustomRule: {
    about: 'AuditCustomRule is a profile for a group.',
    fields: { group: ['!string', 'The group.'], profile: ['!string', 'Its profile.'] },
  },
  TLSSecurityProfile: {
    about: 'TLSSecurityProfile chooses versions and ciphers.',
    fields: {
      type: ['string', 'Old, Intermediate, Modern or Custom.'],
      old: ['any', 'Empty.'],
      intermediate: ['any', 'Empty.'],
      modern: ['any', 'Empty.'],
      custom: ['#CustomTLSProfile', 'With type Custom.'],
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
    fields: { kubeConfig: [SECRET, 'How the server is reached.'] },
  },
  WebhookTokenAuthenticator: {
    about: 'WebhookTokenAuthenticator is a server that reviews tokens.',
    fields: { kubeConfig: [SECRET, 'How the server is reached.'] },
  },
  Build: {
    isKind: true,
    about: 'Build configures builds; this cluster has none.',
    fields: { spec: ['!#BuildSpec', 'What is wanted.'] },
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
    { authentication: ['#ConsoleAuthentication', 'How users leave it.'] },
    { consoleURL: ['string', 'Where the console is.'] },
  ),
  ConsoleAuthentication: {
    about: 'ConsoleAuthentication configures logging out.',
    fields: { logoutRedirect: ['string', 'Where users are sent after logging out.'] },
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
    customNoUpgrade: ['#CustomFeatureGates', 'With CustomNoUpgrade.'],
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
      externalRegistryHostnames: ['[]string', 'Its names outside.'],
    },
  ),
  RegistryLocation: {
    about: 'RegistryLocation is a registry.',
    fields: { domainName: ['!string', 'Its name, with a port.'], insecure: ['boolean', 'Without TLS.'] },
  },
  RegistrySources: {
    about: 'RegistrySources says which registries may be used.',
    fields: {
      insecureRegistries: ['[]string', 'Without TLS.'],
      blockedRegistries: ['[]string', 'Those that may not.'],
      allowedRegistries: ['[]string', 'The only ones that may.'],
      containerRuntimeSearchRegistries: ['[]string', 'Where short names are looked for.'],
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
      name: ['!string', 'Its name.'],
      hostname: ['!string', 'Its host.'],
      servingCertKeyPairSecret: [SECRET, 'A TLS secret in openshift-config.'],
    },
  },
  ComponentRouteStatus: {
    about: 'ComponentRouteStatus is the route of a component.',
    fields: {
      namespace: ['!string', 'Namespace of the route.'],
      name: ['!string', 'Its name.'],
      defaultHostname: ['!string', 'The host that it has when none is set.'],
      consumingUsers: ['[]string', 'Service accounts that read the certificate.'],
      currentHostnames: ['[]string', 'Its hosts.'],
      conditions: ['[]#meta.Condition', 'Whether it is right.'],
      relatedObjects: ['![]#ObjectReference', 'Objects that matter.'],
    },
  },
  RequiredHSTSPolicy: {
    about: 'RequiredHSTSPolicy is HSTS that routes must have.',
    fields: {
      namespaceSelector: ['#meta.LabelSelector', 'Namespaces of the routes.'],
      domainPatterns: ['![]string', 'Hosts of the routes.'],
      maxAge: ['#MaxAgePolicy', 'How long it lasts.'],
      preloadPolicy: ['string', 'RequirePreload, RequireNoPreload or NoOpinion.'],
      includeSubDomainsPolicy: ['string', 'RequireIncludeSubDomains, RequireNoIncludeSubDomains or NoOpinion.'],
    },
  },
  MaxAgePolicy: {
    about: 'MaxAgePolicy bounds the age in seconds.',
    fields: { largestMaxAge: ['int32', 'At most.'], smallestMaxAge: ['int32', 'At least.'] },
  },
  ...kind('OAuth', 'OAuth configures how users log in.', {
    identityProviders: ['[]#IdentityProvider', 'Where users come from, in order.'],
    tokenConfig: ['#TokenConfig', 'How long tokens last.'],
    templates: ['#OAuthTemplates', 'Pages of the login.'],
  }),
  IdentityProvider: {
    about: 'IdentityProvider is where users come from.',
    fields: {
      name: ['string', 'Name, part of identities.'],
      mappingMethod: ['string', 'claim, lookup, add or generate.'],
      type: ['string', 'HTPasswd, LDAP, OpenID, RequestHeader …'],
      basicAuth: ['any', 'With type BasicAuth.'],
      github: ['any', 'With type GitHub.'],
      gitlab: ['any', 'With type GitLab.'],
      google: ['any', 'With type Google.'],
      htpasswd: ['#HTPasswdIdentityProvider', 'With type HTPasswd.'],
      keystone: ['any', 'With type Keystone.'],
      ldap: ['#LDAPIdentityProvider', 'With type LDAP.'],
      openID: ['#OpenIDIdentityProvider', 'With type OpenID.'],
      requestHeader: ['#RequestHeaderIdentityProvider', 'With type RequestHeader.'],
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
      bindPassword: [SECRET, 'Its password, key bindPassword.'],
      insecure: ['!boolean', 'Without TLS.'],
      ca: [CONFIG_MAP, 'Authorities, key ca.crt.'],
      attributes: ['!#LDAPAttributeMapping', 'Attributes of identities.'],
    },
  },
  LDAPAttributeMapping: {
    about: 'LDAPAttributeMapping names attributes.',
    fields: {
      id: ['![]string', 'Of the identity.'],
      preferredUsername: ['[]string', 'Of the user name.'],
      name: ['[]string', 'Of the display name.'],
      email: ['[]string', 'Of the mail address.'],
    },
  },
  OpenIDIdentityProvider: {
    about: 'OpenIDIdentityProvider is an OpenID Connect provider.',
    fields: {
      clientID: ['!string', 'The client.'],
      clientSecret: [`!${SECRET}`, 'Its secret, key clientSecret.'],
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
      preferredUsername: ['[]string', 'Of the user name.'],
      name: ['[]string', 'Of the display name.'],
      email: ['[]string', 'Of the mail address.'],
      groups: ['[]string', 'Of the groups.'],
    },
  },
  RequestHeaderIdentityProvider: {
    about: 'RequestHeaderIdentityProvider is a proxy that names users in headers.',
    fields: {
      loginURL: ['string', 'Where browsers are sent.'],
      challengeURL: ['string', 'Where other clients are sent.'],
      ca: [`!${CONFIG_MAP}`, 'Authorities of the proxy, key ca.crt.'],
      clientCommonNames: ['[]string', 'Names of the proxy.'],
      headers: ['![]string', 'Headers of the identity.'],
      preferredUsernameHeaders: ['[]string', 'Headers of the user name.'],
      nameHeaders: ['[]string', 'Headers of the display name.'],
      emailHeaders: ['[]string', 'Headers of the mail address.'],
    },
  },
  TokenConfig: {
    about: 'TokenConfig says how long tokens last.',
    fields: {
      accessTokenMaxAgeSeconds: ['int32', 'From their issue on.'],
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
    fields: { name: ['!string', 'Its name.'], disabled: ['!boolean', 'Whether it is off.'] },
  },
  HubSourceStatus: {
    about: 'HubSourceStatus is a source.',
    fields: {
      name: ['!string', 'Its name.'],
      disabled: ['!boolean', 'Whether it is off.'],
      status: ['string', 'Success or Error.'],
      message: ['string', 'Why.'],
    },
  },
  ...kind('Project', 'Project configures requests of projects.', {
    projectRequestMessage: ['string', 'What a user reads who may not request projects.'],
    projectRequestTemplate: ['#TemplateReference', 'Template in openshift-config that projects are made by.'],
  }),
  TemplateReference: { about: 'TemplateReference names a template.', fields: { name: ['string', 'Its name.'] } },
  ...kind(
    'Proxy',
    'Proxy configures the way out of the cluster.',
    {
      httpProxy: ['string', 'For HTTP.'],
      httpsProxy: ['string', 'For HTTPS.'],
      noProxy: ['string', 'Hosts and ranges without it, separated by commas.'],
      readinessEndpoints: ['[]string', 'URLs that show whether it works.'],
      trustedCA: [CONFIG_MAP, 'Authorities, key ca-bundle.crt.'],
    },
    {
      httpProxy: ['string', 'For HTTP.'],
      httpsProxy: ['string', 'For HTTPS.'],
      noProxy: ['string', 'Hosts and ranges without it.'],
    },
  ),
  ...kind('Scheduler', 'Scheduler configures scheduling.', {
    policy: [CONFIG_MAP, 'Deprecated.'],
    profile: ['string', 'LowNodeUtilization, HighNodeUtilization or NoScoring.'],
    defaultNodeSelector: ['string', 'Node selector of pods without one.'],
    mastersSchedulable: ['boolean', 'Whether pods may run on masters.'],
  }),
  SecretNameReference: { about: 'SecretNameReference names a secret.', fields: { name: ['!string', 'Its name.'] } },
  ConfigMapNameReference: {
    about: 'ConfigMapNameReference names a config map.',
    fields: { name: ['!string', 'Its name.'] },
  },
});
