import hooks from 'eslint-plugin-react-hooks';
import { defineConfig } from 'eslint/config';
import tseslint from 'typescript-eslint';

const features = [
  'agents',
  'compiles',
  'environments',
  'facts',
  'journeys',
  'notifications',
  'repositories',
  'resources',
  'server',
  'settings',
  'versions',
];

export default defineConfig(
  { ignores: ['dist', 'node_modules', 'src/api/schema.ts'] },
  ...tseslint.configs.strictTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    plugins: { 'react-hooks': hooks },
    rules: {
      ...hooks.configs.recommended.rules,
      'react-hooks/set-state-in-effect': 'off', // drafts follow the address; the effect compares first
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      '@typescript-eslint/only-throw-error': 'off', // the router's redirect is thrown by design
      '@typescript-eslint/no-unnecessary-type-parameters': 'off', // the client names the type of the answer
      'no-restricted-exports': ['error', { restrictDefaultExports: { direct: true } }],
    },
  },
  // Features never import each other, and the design system knows no feature.
  ...features.map((f) => ({
    files: [`src/features/${f}/**`],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          patterns: features
            .filter((o) => o !== f)
            .map((o) => ({ group: [`**/${o}/*`], message: 'features do not import each other' })),
        },
      ],
    },
  })),
  {
    files: ['src/ui/**', 'src/api/**'],
    rules: { 'no-restricted-imports': ['error', { patterns: ['**/features/*', '**/app/*'] }] },
  },
  { files: ['*.config.ts', '*.config.js'], rules: { 'no-restricted-exports': 'off' } },
);
