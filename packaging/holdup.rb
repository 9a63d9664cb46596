# A formula for Homebrew on Linux; `cargo xtask dist --url BASE` fills in what stands between @.
class Holdup < Formula
  desc "Finds what is holding up a database-backed service"
  homepage "@HOME@"
  version "@VERSION@"
  license "Apache-2.0"
  depends_on :linux

  on_intel do
    url "@URL@/holdup-@VERSION@-x86_64-linux.tar.gz"
    sha256 "@SHA256_x86_64@"
  end

  on_arm do
    url "@URL@/holdup-@VERSION@-aarch64-linux.tar.gz"
    sha256 "@SHA256_aarch64@"
  end

  def install
    bin.install "bin/holdup"
    man1.install Dir["share/man/man1/*"]
    bash_completion.install "share/bash-completion/completions/holdup"
    fish_completion.install "share/fish/vendor_completions.d/holdup.fish"
    zsh_completion.install "share/zsh/site-functions/_holdup"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/holdup --version")
  end
end
